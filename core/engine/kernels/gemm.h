// SPDX-License-Identifier: Apache-2.0
// All matrix products of the engine. Dense row-major f32 activations; the second operand of nt and nn may be a weight
// in any of its formats. f32 accumulation; beta is 0 or 1. Bit-for-bit reproducible, because partitions are static.
// With panels of bf16 or int8, activations are rounded (packed.h); with f32, and with bf16 whose rows are not whole
// panels, nothing is. A row's result does not depend on the rows beside it, except where f32 matrices (the factors of
// LoRA) meet more than kMaxSkinnyRows rows of a model in bf16, and round then.
#pragma once
#include <cstdint>
#include <optional>

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
  const float* packed_f32 = nullptr;      // see packed.h; for models in f32
};

// The rows from `row` on of a weight with `cols` columns; for a weight in panels `row` is a multiple of kPanelRows.
inline WeightRef slice(const WeightRef& w, std::int64_t row, std::int64_t cols) {
  const std::int64_t by = row * cols;
  return {w.f32 ? w.f32 + by : nullptr,
          w.bf16 ? w.bf16 + by : nullptr,
          w.packed ? w.packed + by : nullptr,
          w.int8.at ? Int8Weight{w.int8.at + by, w.int8.scales + scale_index(cols, row, 0)} : Int8Weight{},
          w.bf16x12 ? w.bf16x12 + sizes::bf16x12_bytes(row, cols) : nullptr,
          w.packed_f32 ? w.packed_f32 + by : nullptr};
}

// A weight as the second operand of nt, or transposed of nn.
PackedProduct::Matrix stored_matrix(const WeightRef& w, Transpose transpose);

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
  // Not copyable: its products share a workspace.
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // C[m,n] = alpha A[m,k] B[n,k]^T + low + beta C
  void nt(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling = {},
          const LowRank& low = {});
  // C[m,n] = alpha A[m,k] B[k,n] + low + beta C
  void nn(const GemmShape& shape, const float* a, const WeightRef& b, float* c, GemmScaling scaling = {},
          const LowRank& low = {});
  // C[m,n] = alpha A[k,m]^T B[k,n] + beta C, in f32 whatever the type
  void tn(const GemmShape& shape, const float* a, const float* b, float* c, GemmScaling scaling = {});
  // C[m,n] = alpha op(A) op(B) + beta C on the calling thread: for blocks of attention. `thread`: its index in the
  // pool. Call prepare_blocks() before, outside of the pool.
  void prepare_blocks() { packed().prepare(); }
  void block(std::int64_t thread, const GemmShape& shape, MatrixOperand a, const BlockOperand& b, MatrixOutput c,
             GemmScaling scaling = {});
  // See PackedGemm::keep().
  KeptPanels keep(std::int64_t thread, MatrixOperand b, std::int64_t depth, std::int64_t columns, std::int64_t used) {
    return packed().keep(thread, b, depth, columns, used);
  }
  // Gives the memory between products back; the next one allocates it again.
  void release();
  // Products with packed weights of the type; for fused products, tiles of logits and their gradients.
  PackedGemm& packed() { return bf16_ ? *bf16_ : f32_; }

 private:
  struct Output {
    float* c;
    StoreMode store;
  };
  void multiply(const GemmShape& shape, const float* a, const WeightRef& b, Transpose transpose, const Output& out,
                float scale, const LowRank& low);

  Device& device_;
  const CpuKernels& kernels_;
  DeviceBuffer<std::uint16_t> workspace_;
  PackedGemm f32_;
  std::optional<PackedGemm> bf16_;  // where weights are bf16 or int8
};

// Elements [first, first + count) of a weight's row as f32, however it is stored.
void widen_row(const WeightRef& w, std::int64_t k, std::int64_t row, std::int64_t first, std::int64_t count,
               float* out);

}  // namespace mw::engine
