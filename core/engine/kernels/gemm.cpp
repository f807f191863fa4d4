// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/layout/workspace.h"
#include "core/engine/runtime/work_split.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kPanel = sizes::kWidenedFloats;    // stays in L2 between widening and use
constexpr std::int64_t kSkinnyRows = sizes::kSkinnyRows;  // below, sgemm packs more than it computes
constexpr double kInlineFlops = 100e3;                    // waking a worker costs about as much

void single_threaded_blas() {  // our pool decides who computes what
  static const bool once = (openblas_set_num_threads(1), true);
  (void)once;
}

CBLAS_TRANSPOSE blas(Transpose transpose) {
  return transpose == Transpose::no ? CblasNoTrans : CblasTrans;
}
float widened(std::uint16_t bf16) {
  return std::bit_cast<float>(std::uint32_t{bf16} << 16);
}
blasint to_int(std::int64_t n) {
  return static_cast<blasint>(n);
}

void blas_block(const GemmShape& shape, MatrixOperand a, MatrixOperand b, MatrixOutput c, GemmScaling scaling) {
  cblas_sgemm(CblasRowMajor, blas(a.transpose), blas(b.transpose), to_int(shape.m), to_int(shape.n), to_int(shape.k),
              scaling.alpha, a.data, to_int(a.stride), b.data, to_int(b.stride), scaling.beta, c.data,
              to_int(c.stride));
}

double flops_of(const GemmShape& shape) {
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

PackedProduct product_of(const GemmShape& shape, const float* a, float* c, GemmScaling scaling) {
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .scale = scaling.alpha,
          .a = a,
          .store = scaling.beta == 0.0f ? Store::write : Store::accumulate,
          .c = c};
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
  if (const PackedKernels* packed = packed_kernels(); packed && type != model::WeightType::f32)
    return type == model::WeightType::int8 ? packed->int8_name : packed->bf16_name;
  const std::string blas = "OpenBLAS sgemm (" + std::string(openblas_get_corename()) + ")";
  return type != model::WeightType::f32 ? blas + " on widened weights" : blas;
}

// A low-rank summand is fused into the product while its factor is small beside the weight.
bool Gemm::can_fuse(std::int64_t m, const WeightRef& b, const LowRank& low) const {
  return (b.packed || b.bf16x12) && low.z && m > kMaxSkinnyRows && low.rank <= kMostFusedRank;
}

// Returns whether the packed kernels computed the product. `stored` and `dense`: the kind of B if it is packed, and if
// it is f32.
bool Gemm::multiply_packed(PackedProduct p, PackedProduct::Kind stored, PackedProduct::Kind dense, const WeightRef& b,
                           const LowRank& low) {
  if (!b.packed && !b.bf16x12 && !(packed_ && (b.int8.at || (b.f32 && p.m > kMaxSkinnyRows)))) return false;
  const PackedProduct::Kind kind = b.int8.at   ? PackedProduct::Kind::int8
                                   : b.bf16x12 ? PackedProduct::Kind::bf16x12
                                   : b.packed  ? stored
                                               : dense;
  p.b = {kind, b.packed, b.f32, b.int8, b.bf16x12};
  if (low.z) p.low = {low.z, low.rank, low.scale, {dense, nullptr, low.l, {}}};
  packed_->run(p);
  return true;
}

void Gemm::nt(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling,
              const LowRank& low) {
  const bool fused = can_fuse(shape.m, b, low);
  if (!multiply_packed(product_of(shape, a, c, scaling), PackedProduct::Kind::panels, PackedProduct::Kind::rows, b,
                       fused ? low : LowRank{}))
    nt_unpacked(shape, a, b, c, scaling);
  if (low.z && !fused) nt({shape.m, shape.n, low.rank}, low.z, {.f32 = low.l}, c, {low.scale, 1});
}

void Gemm::nn(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling,
              const LowRank& low) {
  if (b.int8.at || b.bf16x12) throw std::logic_error("weights for inference have no backward");
  const bool fused = can_fuse(shape.m, b, low);
  if (!multiply_packed(product_of(shape, a, c, scaling), PackedProduct::Kind::transposed_panels,
                       PackedProduct::Kind::columns, b, fused ? low : LowRank{}))
    nn_unpacked(shape, a, b, c, scaling);
  if (low.z && !fused) nn({shape.m, shape.n, low.rank}, low.z, {.f32 = low.l}, c, {low.scale, 1});
}

void Gemm::prepare_blocks() {
  if (packed_) packed_->prepare();
}

KeptPanels Gemm::keep(std::int64_t thread, MatrixOperand b, std::int64_t depth, std::int64_t columns,
                      std::int64_t used) {
  return packed_ ? packed_->keep(thread, b, depth, columns, used) : KeptPanels{};
}

void Gemm::block(std::int64_t thread, const GemmShape& shape, MatrixOperand a, const BlockOperand& b, MatrixOutput c,
                 GemmScaling scaling) {
  if (packed_ && shape.m > kSkinnyRows)
    packed_->block(thread, shape, a, b, {c.data, c.stride, scaling.beta == 0.0f ? Store::write : Store::accumulate},
                   scaling.alpha);
  else
    blas_block(shape, a, b.dense, c, scaling);
}

template <class F>
void Gemm::split(std::int64_t count, std::int64_t grain, double flops, F fn) {
  const int threads = flops < kInlineFlops ? 1 : device_.pool.threads();
  if (threads == 1) return fn(0, 0, count);
  const auto edge = [&](std::int64_t t) { return split_edge(count, grain, t, threads); };
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

void Gemm::reserve_panels() {
  if (!panels_) panels_ = Buffer<float>(device_.arena, weight_panels(device_.pool.threads()));
}

float* Gemm::panel(int thread) {
  return panels_.data() + thread * kPanel;
}

void Gemm::nt_unpacked(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  if (m == 0) return;
  const double flops = flops_of(shape);
  const VectorKernels& v = vector_kernels();
  if ((m <= kSkinnyRows && !b.int8.at) || (m <= kMaxSkinnyRows && b.f32 && n * k <= kPanel)) {
    return split(n, 16, flops, [&](int, std::int64_t begin, std::int64_t end) {
      if (b.f32)
        v.dot_rows(shape, a, b.f32, c, scaling, {begin, end});
      else
        v.dot_rows_bf16(shape, a, b.bf16, c, scaling, {begin, end});
    });
  }
  if (b.f32) {
    if (m >= n)
      return split(m, 16, flops, [&](int, std::int64_t i, std::int64_t end) {
        blas_block({end - i, n, k}, {a + i * k, k}, {b.f32, k, Transpose::yes}, {c + i * n, n}, scaling);
      });
    return split(n, 16, flops, [&](int, std::int64_t j, std::int64_t end) {
      blas_block({m, end - j, k}, {a, k}, {b.f32 + j * k, k, Transpose::yes}, {c + j, n}, scaling);
    });
  }
  reserve_panels();
  const std::int64_t rows = std::max<std::int64_t>(1, kPanel / k), depth = std::min(k, kPanel);
  split(n, 16, flops, [&](int thread, std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; j += rows) {
      const std::int64_t count = std::min(rows, end - j);
      for (std::int64_t d = 0; d < k; d += depth) {  // one pass unless a single row exceeds the panel
        const std::int64_t some = std::min(depth, k - d);
        for (std::int64_t r = 0; r < count; ++r) widen_row(b, k, j + r, d, some, panel(thread) + r * some);
        blas_block({m, count, some}, {a + d, k}, {panel(thread), some, Transpose::yes}, {c + j, n},
                   {scaling.alpha, d == 0 ? scaling.beta : 1.0f});
      }
    }
  });
}

void Gemm::nn_unpacked(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  if (m == 0) return;
  const double flops = flops_of(shape);
  if (b.f32) {
    if (m >= n)
      return split(m, 16, flops, [&](int, std::int64_t i, std::int64_t end) {
        blas_block({end - i, n, k}, {a + i * k, k}, {b.f32, n}, {c + i * n, n}, scaling);
      });
    return split(n, 16, flops, [&](int, std::int64_t j, std::int64_t end) {
      blas_block({m, end - j, k}, {a, k}, {b.f32 + j, n}, {c + j, n}, scaling);
    });
  }
  reserve_panels();
  const VectorKernels& v = vector_kernels();
  split(n, 16, flops, [&](int thread, std::int64_t begin, std::int64_t end) {
    const std::int64_t width = std::min(end - begin, kPanel);
    for (std::int64_t j = begin; j < end; j += width) {
      const std::int64_t columns = std::min(width, end - j), rows = std::max<std::int64_t>(1, kPanel / columns);
      for (std::int64_t d = 0; d < k; d += rows) {
        const std::int64_t some = std::min(rows, k - d);
        for (std::int64_t r = 0; r < some; ++r) v.widen(columns, b.bf16 + (d + r) * n + j, panel(thread) + r * columns);
        blas_block({m, columns, some}, {a + d, k}, {panel(thread), columns}, {c + j, n},
                   {scaling.alpha, d == 0 ? scaling.beta : 1.0f});
      }
    }
  });
}

void Gemm::tn(const GemmShape& shape, const float* a, const float* b, float* c, GemmScaling scaling) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  if (k == 0) return;
  const double flops = flops_of(shape);
  if (m >= n)
    return split(m, 16, flops, [&](int, std::int64_t i, std::int64_t end) {
      blas_block({end - i, n, k}, {a + i, m, Transpose::yes}, {b, n}, {c + i * n, n}, scaling);
    });
  split(n, 16, flops, [&](int, std::int64_t j, std::int64_t end) {
    blas_block({m, end - j, k}, {a, m, Transpose::yes}, {b + j, n}, {c + j, n}, scaling);
  });
}

}  // namespace mw::engine
