// SPDX-License-Identifier: Apache-2.0
// All matrix products of the engine. Dense row-major f32 activations; the second operand of nt and nn may be a
// bf16 weight. f32 accumulation. Bit-for-bit reproducible for a given thread count: static partitions only.
// f32: OpenBLAS, and dot products for a few rows. bf16: on AVX-512 BF16 weights are packed and activations rounded
// (packed_gemm.h); elsewhere weights are widened panel by panel for OpenBLAS.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/engine/kernels/packed_gemm.h"
#include "core/engine/runtime/device.h"
#include "core/model/types.h"

namespace mw::engine {

struct WeightRef {  // exactly one pointer is set
  const float* f32 = nullptr;
  const std::uint16_t* bf16 = nullptr;    // row-major
  const std::uint16_t* packed = nullptr;  // see packed.h
  Int8Weight int8{};                      // see packed.h; nt only
  const std::byte* bf16x12 = nullptr;     // see bf16x12.h; nt only
};

// The rows from `row` on of a weight with `cols` columns; for a weight in panels `row` is a multiple of kPanelRows.
inline WeightRef slice(WeightRef w, std::int64_t row, std::int64_t cols) {
  const std::int64_t by = row * cols;
  return {w.f32 ? w.f32 + by : nullptr, w.bf16 ? w.bf16 + by : nullptr, w.packed ? w.packed + by : nullptr,
          w.int8.at ? Int8Weight{w.int8.at + by, w.int8.scales + scale_index(cols, row, 0)} : Int8Weight{},
          w.bf16x12 ? w.bf16x12 + sizes::bf16x12_bytes(row, cols) : nullptr};
}

// An additional summand: scale * Z[M,rank] L, with L [N,rank]^T in nt and [rank,N] in nn. The second half of a LoRA
// branch.
struct LowRank {
  const float* z = nullptr;  // null: none
  const float* l = nullptr;
  std::int64_t rank = 0;
  float scale = 1;
};

class Gemm {
 public:
  Gemm(Device& device, model::WeightType type);
  // Whether weights of the type are packed on this processor.
  static bool packs_weights(model::WeightType type);
  bool packs() const { return packed_.has_value(); }
  // Describes the kernels for `type` weights on this processor: "vdpbf16ps on packed weights".
  static std::string describe(model::WeightType type);

  // C[M,N] = alpha A[M,K] B[N,K]^T + low + beta C, beta 0 or 1
  void nt(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
          float* c, const LowRank& low = {});
  // C[M,N] = alpha A[M,K] B[K,N] + low + beta C, beta 0 or 1
  void nn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
          float* c, const LowRank& low = {});
  // C[M,N] = alpha A[K,M]^T B[K,N] + beta C
  void tn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, const float* b, float beta,
          float* c);
  // C[M,N] = alpha op(A) op(B) + beta C on the calling thread, with leading dimensions, beta 0 or 1: for blocks
  // of attention. `thread`: its index in the pool. Call prepare_blocks() before, outside of the pool.
  void prepare_blocks();
  void block(std::int64_t thread, Operand a_op, Operand b_op, std::int64_t m, std::int64_t n, std::int64_t k,
             float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
             std::int64_t ldc);
  // The packed products themselves, where packs(): tiles of logits, and bf16 gradients of them.
  PackedGemm& packed() { return *packed_; }
  const PackedGemm& packed() const { return *packed_; }

 private:
  bool multiply_packed(const PackedProduct& shape, PackedProduct::Kind stored, PackedProduct::Kind dense, WeightRef b,
                       float beta, const LowRank& low);
  bool fuses(std::int64_t m, const WeightRef& b, const LowRank& low) const;
  void nt_rows(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
               float* c);
  void nn_rows(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
               float* c);
  // Splits `count` over the pool; fn(thread, begin, end).
  template <class F>
  void split(std::int64_t count, std::int64_t grain, double flops, F fn);
  float* panel(int thread);

  Device& device_;
  std::optional<PackedGemm> packed_;
  Buffer<float> panels_;  // [threads, kPanel]: widened bf16 weights, allocated when first needed
};

// Elements [first, first + count) of a weight's row as f32, however it is stored.
void widen_row(const WeightRef& w, std::int64_t k, std::int64_t row, std::int64_t first, std::int64_t count,
               float* out);

}  // namespace mw::engine
