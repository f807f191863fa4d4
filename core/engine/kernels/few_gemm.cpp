// SPDX-License-Identifier: Apache-2.0
// PackedGemm's products of the few rows of decoding: everything that reads one input, from its norm to GeGLU, in one
// dispatch. Each thread normalises and rounds all rows for itself, which costs less than waiting for another.
#include <algorithm>
#include <latch>

#include "core/engine/kernels/packed_blocks.h"

namespace mw::engine {
namespace {

using Kind = PackedProduct::Kind;

// Rows of a LoRA factor that threads share out. dot_rows() takes short ones sixteen at a time, in an order of its own.
constexpr std::int64_t kShortRow = 64, kShortRows = 16, kFactorRows = 4;

// The workspace's activations hold them in bf16 and, before, in f32.
constexpr std::int64_t kDeepest = kActivations / (3 * kDecodedRows);

}  // namespace

bool PackedGemm::takes_few(std::int64_t m, std::int64_t k) const {
  return m > 0 && m <= kDecodedRows && k <= kDeepest;
}

void PackedGemm::few_products(std::int64_t m, std::int64_t k, const Activations& x, std::span<const Branch> branches,
                              const RowNorm& norm, Share share) {
  const VectorKernels& v = vector_kernels();
  const Workspace w = workspace(share.thread);
  const float* rows = x.x;
  if (norm.inv) {
    auto* const normed = reinterpret_cast<float*>(w.a + kDecodedRows * k);
    float unused[kDecodedRows];
    v.rms_norm(m, k, x.x, x.gain, norm.eps, normed, share.thread == 0 ? norm.inv : unused);
    rows = normed;
  }
  for (const Branch& b : branches) {
    const Range some = share.of(b.low.rank, k <= kShortRow ? kShortRows : kFactorRows);
    if (some.size() > 0) v.dot_rows(m, b.low.rank, k, 1.0f, rows, b.low.first.f32, 0.0f, b.low.z, some.begin, some.end);
  }
  auto* const whole = reinterpret_cast<std::int16_t*>(w.a);
  auto* const scales = reinterpret_cast<float*>(w.b);
  const bool int8 = branches.front().b.kind == Kind::int8;
  int8 ? kernels_.quantise_rows(m, k, rows, whole, scales) : kernels_.narrow_rows(m, k, 1.0f, rows, k, w.a, k);
  for (const Branch& b : branches) {
    const Range columns = share.of(b.n, kPanelRows);
    if (int8)
      kernels_.int8_rows(m, columns.size(), k, whole, scales, int8_from(b.b.int8, k, columns.begin),
                         b.c + columns.begin, b.n, b.store);
    else
      few_columns(m, k, b.b, columns, w, b.c, b.n, b.store);
  }
}

void PackedGemm::few(std::int64_t m, std::int64_t k, const Activations& x, std::span<const Branch> branches,
                     const RowNorm& norm, float* gated) {
  const VectorKernels& v = vector_kernels();
  double work = 0;
  bool low = false;
  for (const Branch& b : branches)
    work += 2.0 * static_cast<double>(m * k) * static_cast<double>(b.n), low = low || b.low.rank > 0;
  const std::int64_t threads = work < kInlineFlops ? 1 : device_.pool.threads();
  prepare();
  std::latch every_z(threads);
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) few_products(m, k, x, branches, norm, {t, threads});
    if (low) every_z.arrive_and_wait(last - first);
    for (std::int64_t t = first; t < last; ++t) {
      const Share share{t, threads};
      for (const Branch& b : branches) {
        const Range columns = share.of(b.n, kPanelRows);
        if (b.low.rank > 0)
          v.dot_rows(m, b.n, b.low.rank, b.low.scale, b.low.z, b.low.second.f32, 1.0f, b.c, columns.begin, columns.end);
      }
      if (!gated) continue;
      const std::int64_t n = branches[0].n;
      const Range columns = share.of(n, kPanelRows);
      for (std::int64_t at = columns.begin; at < m * n; at += n)
        v.geglu(columns.size(), branches[0].c + at, branches[1].c + at, gated + at);
    }
  });
}

}  // namespace mw::engine
