// SPDX-License-Identifier: Apache-2.0
// Products of f32 activations with packed bf16 weights: activations are rounded to bf16 block by block, the weights'
// panels are read as they are (depth along K) or turned block by block (depth along N, the backward).
#pragma once
#include <cstdint>
#include <functional>

#include "core/engine/kernels/packed.h"
#include "core/engine/network.h"

namespace mw::engine {

enum class Operand { plain, transposed };

// C[M,N] (+)= scale * A[M,K] B + low.scale * Z[M,rank] L, B and L as their kinds say.
struct PackedProduct {
  enum class Kind {
    panels,  // packed [N,K]
    turned,  // packed [K,N]
    int8,    // packed int8 [N,K]
    rows,    // f32 [N,K]
    columns  // f32 [K,N]
  };
  struct Matrix {
    Kind kind = Kind::panels;
    const std::uint16_t* packed = nullptr;
    const float* f32 = nullptr;
    Int8Weight int8{};
  };
  std::int64_t m = 0, n = 0, k = 0;
  float scale = 1;
  const float* a = nullptr;             // or
  const std::uint16_t* half = nullptr;  // bf16 [M,K]
  Matrix b;
  struct Low {
    const float* z = nullptr;  // f32 [M,rank]; null: none
    std::int64_t rank = 0;
    float scale = 1;
    Matrix b;  // kind rows [N,rank] or columns [rank,N]
  } low;
  Store store = Store::write;
  float* c = nullptr;
};

using sizes::kMostFusedRank;

class PackedGemm {
 public:
  PackedGemm(Device& device, const PackedKernels& kernels) : device_(device), kernels_(kernels) {}
  void run(const PackedProduct& product);

  // C[M,N] (+)= scale * op(A) op(B) of f32 blocks with leading dimensions, on the calling thread: attention's. `thread`
  // is its index in the pool; prepare() comes first, outside.
  void prepare();
  void block(std::int64_t thread, Operand a_op, Operand b_op, std::int64_t m, std::int64_t n, std::int64_t k,
             float scale, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, Store store, float* c,
             std::int64_t ldc);

  // A tile of A B^T, handed to the thread that computed it while it is in that core's cache.
  struct Tile {
    int thread;
    std::int64_t row, rows, column, columns;
    float* at;  // [rows, stride]
    std::int64_t stride;
  };
  // Every tile of A[M,K] B[N,K]^T, in an order that depends on the shape only; B packed.
  void stream(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const std::uint16_t* b,
              const std::function<void(const Tile&)>& take);

 private:
  struct Range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  struct Workspace {
    std::uint16_t *a, *b, *z, *low;
  };
  Workspace workspace(std::int64_t thread);
  void few_part(const PackedProduct& p, Range columns, const Workspace& w);
  void int8_part(const PackedProduct& p, Range columns, const Workspace& w);
  void run_part(const PackedProduct& p, Range rows, Range columns, const Workspace& w);
  void pack(const PackedProduct::Matrix& b, const PackedProduct& p, Range depth, Range columns, std::uint16_t* out);

  Device& device_;
  const PackedKernels& kernels_;
  Buffer<std::uint16_t> workspace_;
  Buffer<float> tiles_;
};

}  // namespace mw::engine
