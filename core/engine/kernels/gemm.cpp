// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/layout/workspace.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kPanel = sizes::kWidenedFloats;    // stays in L2 between widening and use
constexpr std::int64_t kSkinnyRows = sizes::kSkinnyRows;  // below, sgemm packs more than it computes
constexpr double kInlineFlops = 100e3;                    // waking a worker costs about as much

void single_threaded_blas() {  // our pool decides who computes what
  static const bool once = (openblas_set_num_threads(1), true);
  (void)once;
}

CBLAS_TRANSPOSE op(Operand o) {
  return o == Operand::plain ? CblasNoTrans : CblasTrans;
}
float widened(std::uint16_t bf16) {
  return std::bit_cast<float>(std::uint32_t{bf16} << 16);
}
blasint to_int(std::int64_t n) {
  return static_cast<blasint>(n);
}

void gemm_block(Operand a_op, Operand b_op, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  cblas_sgemm(CblasRowMajor, op(a_op), op(b_op), to_int(m), to_int(n), to_int(k), alpha, a, to_int(lda), b, to_int(ldb),
              beta, c, to_int(ldc));
}

}  // namespace

Gemm::Gemm(Device& device, model::WeightType type) : device_(device) {
  single_threaded_blas();
  if (packs_weights(type)) packed_.emplace(device, *packed_kernels());
}

bool Gemm::packs_weights(model::WeightType type) {
  return packed_kernels() && type != model::WeightType::f32;
}

std::string Gemm::describe(model::WeightType type) {
  if (packed_kernels() && type == model::WeightType::int8)
    return "vpdpwssd on packed int8 weights, vdpbf16ps from 25 rows on";
  if (packed_kernels() && type == model::WeightType::bf16)
    return "vdpbf16ps on packed weights, in 12 bits for inference";
  const std::string blas = "OpenBLAS sgemm (" + std::string(openblas_get_corename()) + ")";
  return type != model::WeightType::f32 ? blas + " on widened weights" : blas;
}

// A low-rank summand goes into the product itself while its factor stays small beside the weight.
bool Gemm::fuses(std::int64_t m, const WeightRef& b, const LowRank& low) const {
  return (b.packed || b.bf16x12) && low.z && m > kMaxSkinnyRows && low.rank <= kMostFusedRank;
}

// True if the packed kernels did it; `stored` and `dense` say how B lies in memory, packed or f32.
bool Gemm::multiply_packed(const PackedProduct& shape, PackedProduct::Kind stored, PackedProduct::Kind dense,
                           WeightRef b, float beta, const LowRank& low) {
  if (!b.packed && !b.bf16x12 && !(packed_ && (b.int8.at || (b.f32 && shape.m > kMaxSkinnyRows)))) return false;
  PackedProduct p = shape;
  const PackedProduct::Kind kind = b.int8.at   ? PackedProduct::Kind::int8
                                   : b.bf16x12 ? PackedProduct::Kind::bf16x12
                                   : b.packed  ? stored
                                               : dense;
  p.b = {kind, b.packed, b.f32, b.int8, b.bf16x12};
  if (low.z) p.low = {low.z, low.rank, low.scale, {dense, nullptr, low.l, {}}};
  p.store = beta == 0.0f ? Store::write : Store::accumulate;
  packed_->run(p);
  return true;
}

namespace {

PackedProduct shape_of(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, float* c) {
  PackedProduct p;
  p.m = m, p.n = n, p.k = k, p.scale = alpha, p.a = a, p.c = c;
  return p;
}

}  // namespace

void Gemm::nt(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
              float* c, const LowRank& low) {
  const bool fused = fuses(m, b, low);
  if (!multiply_packed(shape_of(m, n, k, alpha, a, c), PackedProduct::Kind::panels, PackedProduct::Kind::rows, b, beta,
                       fused ? low : LowRank{}))
    nt_rows(m, n, k, alpha, a, b, beta, c);
  if (low.z && !fused) nt(m, n, low.rank, low.scale, low.z, {.f32 = low.l}, 1.0f, c);
}

void Gemm::nn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
              float* c, const LowRank& low) {
  if (b.int8.at || b.bf16x12) throw std::logic_error("weights for inference have no backward");
  const bool fused = fuses(m, b, low);
  if (!multiply_packed(shape_of(m, n, k, alpha, a, c), PackedProduct::Kind::transposed_panels,
                       PackedProduct::Kind::columns, b, beta, fused ? low : LowRank{}))
    nn_rows(m, n, k, alpha, a, b, beta, c);
  if (low.z && !fused) nn(m, n, low.rank, low.scale, low.z, {.f32 = low.l}, 1.0f, c);
}

void Gemm::prepare_blocks() {
  if (packed_) packed_->prepare();
}

void Gemm::block(std::int64_t thread, Operand a_op, Operand b_op, std::int64_t m, std::int64_t n, std::int64_t k,
                 float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                 std::int64_t ldc) {
  if (packed_ && m > kSkinnyRows)
    packed_->block(thread, a_op, b_op, m, n, k, alpha, a, lda, b, ldb, beta == 0.0f ? Store::write : Store::accumulate,
                   c, ldc);
  else
    gemm_block(a_op, b_op, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class F>
void Gemm::split(std::int64_t count, std::int64_t grain, double flops, F fn) {
  const int threads = flops < kInlineFlops ? 1 : device_.pool.threads();
  if (threads == 1) return fn(0, 0, count);
  const std::int64_t units = (count + grain - 1) / grain;
  const auto edge = [&](std::int64_t t) { return std::min(count, units * t / threads * grain); };
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t)
      if (edge(t) < edge(t + 1)) fn(static_cast<int>(t), edge(t), edge(t + 1));
  });
}

void widen_row(const WeightRef& w, std::int64_t k, std::int64_t row, std::int64_t first, std::int64_t count,
               float* out) {
  if (w.f32) {
    std::copy_n(w.f32 + row * k + first, count, out);
  } else if (w.bf16) {
    vector_kernels().widen(count, w.bf16 + row * k + first, out);
  } else if (w.packed) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = widened(w.packed[packed_index(k, row, first + i)]);
  } else if (w.bf16x12) {
    std::uint16_t block[kPanelRows * kBf16x12Depth];
    for (std::int64_t i = first, end; i < first + count; i = end) {
      const std::int64_t begin = i / kBf16x12Depth * kBf16x12Depth, depth = std::min(kBf16x12Depth, k - begin);
      packed_kernels()->widen_bf16x12(kPanelRows, k, begin, depth, w.bf16x12 + sizes::bf16x12_bytes(row, k), block);
      for (end = std::min(begin + depth, first + count); i < end; ++i)
        *out++ = widened(block[packed_index(depth, row % kPanelRows, i - begin)]);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = widened(w.int8.scales[scale_index(k, row, first + i)]) *
               static_cast<float>(w.int8.at[packed_index(k, row, first + i)]);
  }
}

float* Gemm::panel(int thread) {
  return panels_.data() + thread * kPanel;
}

void Gemm::nt_rows(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
                   float* c) {
  if (m == 0) return;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const VectorKernels& v = vector_kernels();
  if ((m <= kSkinnyRows && !b.int8.at) || (m <= kMaxSkinnyRows && b.f32 && n * k <= kPanel)) {
    return split(n, 16, flops, [&](int, std::int64_t begin, std::int64_t end) {
      if (b.f32)
        v.dot_rows(m, n, k, alpha, a, b.f32, beta, c, begin, end);
      else
        v.dot_rows_bf16(m, n, k, alpha, a, b.bf16, beta, c, begin, end);
    });
  }
  if (b.f32) {
    if (m >= n)
      return split(m, 16, flops, [&](int, std::int64_t i, std::int64_t end) {
        gemm_block(Operand::plain, Operand::transposed, end - i, n, k, alpha, a + i * k, k, b.f32, k, beta, c + i * n,
                   n);
      });
    return split(n, 16, flops, [&](int, std::int64_t j, std::int64_t end) {
      gemm_block(Operand::plain, Operand::transposed, m, end - j, k, alpha, a, k, b.f32 + j * k, k, beta, c + j, n);
    });
  }
  if (!panels_) panels_ = Buffer<float>(device_.arena, weight_panels(device_.pool.threads()));
  const std::int64_t rows = std::max<std::int64_t>(1, kPanel / k), depth = std::min(k, kPanel);
  split(n, 16, flops, [&](int thread, std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; j += rows) {
      const std::int64_t count = std::min(rows, end - j);
      for (std::int64_t d = 0; d < k; d += depth) {  // one pass unless a single row exceeds the panel
        const std::int64_t some = std::min(depth, k - d);
        for (std::int64_t r = 0; r < count; ++r) widen_row(b, k, j + r, d, some, panel(thread) + r * some);
        gemm_block(Operand::plain, Operand::transposed, m, count, some, alpha, a + d, k, panel(thread), some,
                   d == 0 ? beta : 1.0f, c + j, n);
      }
    }
  });
}

void Gemm::nn_rows(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
                   float* c) {
  if (m == 0) return;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (b.f32) {
    if (m >= n)
      return split(m, 16, flops, [&](int, std::int64_t i, std::int64_t end) {
        gemm_block(Operand::plain, Operand::plain, end - i, n, k, alpha, a + i * k, k, b.f32, n, beta, c + i * n, n);
      });
    return split(n, 16, flops, [&](int, std::int64_t j, std::int64_t end) {
      gemm_block(Operand::plain, Operand::plain, m, end - j, k, alpha, a, k, b.f32 + j, n, beta, c + j, n);
    });
  }
  if (!panels_) panels_ = Buffer<float>(device_.arena, weight_panels(device_.pool.threads()));
  const VectorKernels& v = vector_kernels();
  split(n, 16, flops, [&](int thread, std::int64_t begin, std::int64_t end) {
    const std::int64_t width = std::min(end - begin, kPanel);
    for (std::int64_t j = begin; j < end; j += width) {
      const std::int64_t columns = std::min(width, end - j), rows = std::max<std::int64_t>(1, kPanel / columns);
      for (std::int64_t d = 0; d < k; d += rows) {
        const std::int64_t some = std::min(rows, k - d);
        for (std::int64_t r = 0; r < some; ++r) v.widen(columns, b.bf16 + (d + r) * n + j, panel(thread) + r * columns);
        gemm_block(Operand::plain, Operand::plain, m, columns, some, alpha, a + d, k, panel(thread), columns,
                   d == 0 ? beta : 1.0f, c + j, n);
      }
    }
  });
}

void Gemm::tn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, const float* b, float beta,
              float* c) {
  if (k == 0) return;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (m >= n)
    return split(m, 16, flops, [&](int, std::int64_t i, std::int64_t end) {
      gemm_block(Operand::transposed, Operand::plain, end - i, n, k, alpha, a + i, m, b, n, beta, c + i * n, n);
    });
  split(n, 16, flops, [&](int, std::int64_t j, std::int64_t end) {
    gemm_block(Operand::transposed, Operand::plain, m, end - j, k, alpha, a, m, b + j, n, beta, c + j, n);
  });
}

}  // namespace mw::engine
