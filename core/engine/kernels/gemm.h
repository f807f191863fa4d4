// SPDX-License-Identifier: Apache-2.0
// The one seam to matrix multiplication. Dense row-major f32 activations; the second operand of nt and nn may be a
// bf16 weight. f32 accumulation. Bit-for-bit reproducible for a given thread count: static partitions only.
#pragma once
#include <cstdint>
#include <vector>

#include "core/engine/network.h"

namespace mw::engine {

struct WeightRef {  // one of them set
  const float* f32 = nullptr;
  const std::uint16_t* bf16 = nullptr;
};

class Gemm {
 public:
  explicit Gemm(Device& device);
  // C[M,N] = alpha A[M,K] B[N,K]^T + beta C
  void nt(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
          float* c);
  // C[M,N] = alpha A[M,K] B[K,N] + beta C
  void nn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, WeightRef b, float beta,
          float* c);
  // C[M,N] = alpha A[K,M]^T B[K,N] + beta C
  void tn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, const float* b, float beta,
          float* c);

 private:
  // Splits `count` over the pool; fn(thread, begin, end).
  template <class F>
  void split(std::int64_t count, std::int64_t grain, double flops, F fn);
  float* panel(int thread);

  Device& device_;
  Buffer<float> panels_;  // [threads, kPanel]: widened bf16 weights, allocated when first needed
};

enum class Operand { plain, transposed };
// C[M,N] = alpha op(A) op(B) + beta C on the calling thread, with leading dimensions: attention's blocks.
void gemm_block(Operand a_op, Operand b_op, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);

}  // namespace mw::engine
