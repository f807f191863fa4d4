// SPDX-License-Identifier: Apache-2.0
// All matrix products of the engine. Dense row-major f32 activations; the second operand of nt and nn may be a
// bf16 weight. f32 accumulation; with packed weights beta is 0 or 1. Bit-for-bit reproducible for a given thread count,
// because partitions are static.
// f32: OpenBLAS, and dot products for few rows. bf16: from AVX2 on weights are packed and activations rounded
// (packed_gemm.h); otherwise weights are widened panel by panel for OpenBLAS.
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
inline WeightRef slice(const WeightRef& w, std::int64_t row, std::int64_t cols) {
  const std::int64_t by = row * cols;
  return {w.f32 ? w.f32 + by : nullptr, w.bf16 ? w.bf16 + by : nullptr, w.packed ? w.packed + by : nullptr,
          w.int8.at ? Int8Weight{w.int8.at + by, w.int8.scales + scale_index(cols, row, 0)} : Int8Weight{},
          w.bf16x12 ? w.bf16x12 + sizes::bf16x12_bytes(row, cols) : nullptr};
}

// The second half of a LoRA branch, added to a product: scale * Z[m,rank] L, with L [n,rank]^T in nt and [rank,n] in
// nn.
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
  // Describes the kernels for `type` weights on this processor: "AVX2 FMA on packed bf16 weights".
  static std::string describe(model::WeightType type);

  // C[m,n] = alpha A[m,k] B[n,k]^T + low + beta C
  void nt(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling = {},
          const LowRank& low = {});
  // C[m,n] = alpha A[m,k] B[k,n] + low + beta C
  void nn(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling = {},
          const LowRank& low = {});
  // C[m,n] = alpha A[k,m]^T B[k,n] + beta C
  void tn(const GemmShape& shape, const float* a, const float* b, float* c, GemmScaling scaling = {});
  // C[m,n] = alpha op(A) op(B) + beta C on the calling thread: for blocks of attention. `thread`: its index in the
  // pool. Call prepare_blocks() before, outside of the pool.
  void prepare_blocks();
  void block(std::int64_t thread, const GemmShape& shape, MatrixOperand a, const BlockOperand& b, MatrixOutput c,
             GemmScaling scaling = {});
  // See PackedGemm::keep(); without packed weights nothing is kept.
  KeptPanels keep(std::int64_t thread, MatrixOperand b, std::int64_t depth, std::int64_t columns, std::int64_t used);
  // Only if packs(). For fused products, tiles of logits and their gradients.
  PackedGemm& packed() { return *packed_; }
  const PackedGemm& packed() const { return *packed_; }

 private:
  bool multiply_packed(PackedProduct p, PackedProduct::Kind stored, PackedProduct::Kind dense, const WeightRef& b,
                       const LowRank& low);
  bool can_fuse(std::int64_t m, const WeightRef& b, const LowRank& low) const;
  void nt_unpacked(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling);
  void nn_unpacked(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling);
  // Splits `count` over the pool; fn(thread, begin, end).
  template <class F>
  void split(std::int64_t count, std::int64_t grain, double flops, F fn);
  void reserve_panels();
  float* panel(int thread);

  Device& device_;
  std::optional<PackedGemm> packed_;
  Buffer<float> panels_;  // [threads, kPanel]: widened bf16 weights, allocated when first needed
};

// Elements [first, first + count) of a weight's row as f32, however it is stored.
void widen_row(const WeightRef& w, std::int64_t k, std::int64_t row, std::int64_t first, std::int64_t count,
               float* out);

}  // namespace mw::engine
