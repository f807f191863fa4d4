// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "core/engine/kernels/kernel_choice.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/runtime/work_split.h"

namespace mw::engine {
namespace {

using Kind = PackedProduct::Kind;

constexpr std::int64_t kUnroundedRows = 8;  // of blocks of attention: fewer rows are multiplied in f32
constexpr double kInlineFlops = 100e3;      // waking a worker costs about as much

float widened(std::uint16_t bf16) {
  return std::bit_cast<float>(std::uint32_t{bf16} << 16);
}

StoreMode store_of(const GemmScaling& scaling) {
  if (scaling.beta != 0.0f && scaling.beta != 1.0f) throw std::logic_error("beta of a product is 0 or 1");
  return scaling.beta == 0.0f ? StoreMode::write : StoreMode::accumulate;
}

}  // namespace

PackedProduct::Matrix stored_matrix(const WeightRef& w, Transpose transpose) {
  const bool nt = transpose == Transpose::no;
  if (!nt && (w.int8.at || w.bf16x12)) throw std::logic_error("weights for inference have no backward");
  if (w.int8.at) return {.kind = Kind::int8, .int8 = w.int8};
  if (w.bf16x12) return {.kind = Kind::bf16x12, .bf16x12 = w.bf16x12};
  if (w.f32) return {.kind = nt ? Kind::rows : Kind::columns, .f32 = w.f32};
  if (w.bf16) return {.kind = nt ? Kind::bf16_rows : Kind::bf16_columns, .bf16 = w.bf16};
  return {.kind = nt ? Kind::panels : Kind::transposed_panels,
          .packed = w.packed ? w.packed : reinterpret_cast<const std::uint16_t*>(w.packed_f32)};
}

Gemm::Gemm(Device& device, model::WeightType type)
    : device_(device),
      kernels_(cpu_kernels(device.arithmetic.value_or(best_arithmetic(type)))),
      f32_(device, kernels_.f32, workspace_) {
  if (type != model::WeightType::f32) bf16_.emplace(device, kernels_.bf16, workspace_);
}

// A low-rank summand is fused into the product while its factor is small beside the weight.
void Gemm::multiply(const GemmShape& shape, const float* a, const WeightRef& b, Transpose transpose, const Output& out,
                    float scale, const LowRank& low) {
  if (shape.m == 0) return;
  const bool fused =
      low.z && !b.f32 && !b.bf16 && !b.int8.at && shape.m > kMaxSkinnyRows && low.rank <= packed().most_fused_rank();
  if (bf16_ && b.f32 && shape.m <= kMaxSkinnyRows && transpose == Transpose::no) {
    const double flops = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
    const int threads = flops < kInlineFlops ? 1 : device_.pool.threads();
    device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t)
        vector_kernels().dot_rows(shape, a, b.f32, out.c, {scale, out.store == StoreMode::write ? 0.0f : 1.0f},
                                  {split_edge(shape.n, 16, t, threads), split_edge(shape.n, 16, t + 1, threads)});
    });
  } else {
    PackedProduct product{.m = shape.m,
                          .n = shape.n,
                          .k = shape.k,
                          .scale = scale,
                          .a = a,
                          .b = stored_matrix(b, transpose),
                          .store = out.store,
                          .c = out.c};
    if (fused) product.low = {low.z, low.rank, low.scale, stored_matrix({.f32 = low.l}, transpose)};
    const bool rounds = bf16_ && !b.bf16 && !(b.f32 && shape.m <= kMaxSkinnyRows);
    (rounds ? *bf16_ : f32_).run(product);
  }
  if (low.z && !fused)
    multiply({shape.m, shape.n, low.rank}, low.z, {.f32 = low.l}, transpose,
             {out.c, bf16_ ? StoreMode::accumulate : StoreMode::extend}, low.scale, {});
}

void Gemm::nt(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling,
              const LowRank& low) {
  multiply(shape, a, b, Transpose::no, {c, store_of(scaling)}, scaling.alpha, low);
}

void Gemm::nn(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling,
              const LowRank& low) {
  multiply(shape, a, b, Transpose::yes, {c, store_of(scaling)}, scaling.alpha, low);
}

void Gemm::tn(const GemmShape& shape, const float* a, const float* b, float* c, GemmScaling scaling) {
  const StoreMode store = store_of(scaling);
  if (shape.k > 0) f32_.run_transposed(shape, a, b, c, scaling.alpha, store);
}

void Gemm::block(std::int64_t thread, const GemmShape& shape, MatrixOperand a, const BlockOperand& b, MatrixOutput c,
                 GemmScaling scaling) {
  const TileOutput out{c.data, c.stride, store_of(scaling)};
  if (bf16_ && shape.m <= kUnroundedRows)
    f32_.block(thread, shape, a, {b.dense}, out, scaling.alpha);
  else
    packed().block(thread, shape, a, b, out, scaling.alpha);
}

void Gemm::release() {
  packed().release();
  workspace_ = {};
}

void widen_row(const WeightRef& w, std::int64_t k, std::int64_t row, std::int64_t first, std::int64_t count,
               float* out) {
  if (w.f32) {
    std::copy_n(w.f32 + row * k + first, count, out);
  } else if (w.packed_f32) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = w.packed_f32[packed_f32_index(k, row, first + i)];
  } else if (w.bf16) {
    vector_kernels().widen(count, w.bf16 + row * k + first, out);
  } else if (w.packed) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = widened(w.packed[packed_index(k, row, first + i)]);
  } else if (w.bf16x12) {
    std::uint16_t block[kPanelRows * kBf16x12Depth];
    for (std::int64_t i = first, end; i < first + count; i = end) {
      const std::int64_t begin = i / kBf16x12Depth * kBf16x12Depth, depth = std::min(kBf16x12Depth, k - begin);
      cpu_kernels().bf16.packed.widen_bf16x12(kPanelRows, k, begin, depth, w.bf16x12 + sizes::bf16x12_bytes(row, k),
                                              block);
      for (end = std::min(begin + depth, first + count); i < end; ++i)
        *out++ = widened(block[packed_index(depth, row % kPanelRows, i - begin)]);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = widened(w.int8.scales[scale_index(k, row, first + i)]) *
               static_cast<float>(w.int8.at[packed_index(k, row, first + i)]);
  }
}

}  // namespace mw::engine
