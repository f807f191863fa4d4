// SPDX-License-Identifier: Apache-2.0
// Products of f32 activations with packed weights, of bf16 or of f32. With bf16 the activations are rounded to bf16
// block by block; the weights' panels are read in place (depth along K) or transposed block by block (depth along N, in
// the backward). Many rows use the kernels of gemm_kernels.h and few rows those of packed.h, with the same bits for a
// row.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/runtime/device.h"

namespace mw::engine {

// C[M,N] (+)= scale * A[M,K] B + low.scale * Z[M,rank] L, B and L as their kinds say.
struct PackedProduct {
  enum class Kind {
    panels,             // packed [N,K], bf16 or f32 as the kernels
    transposed_panels,  // packed [K,N], likewise
    bf16x12,            // packed [N,K] in 12 bits (bf16x12.h)
    int8,               // packed int8 [N,K]
    rows,               // f32 [N,K]
    columns,            // f32 [K,N]
    bf16_rows,          // bf16 [N,K]
    bf16_columns        // bf16 [K,N]
  };
  struct Matrix {
    Kind kind = Kind::panels;
    const std::uint16_t* packed = nullptr;  // panels
    const float* f32 = nullptr;
    Int8Weight int8{};
    const std::byte* bf16x12 = nullptr;
    const std::uint16_t* bf16 = nullptr;
  };
  std::int64_t m = 0, n = 0, k = 0;
  float scale = 1;
  const float* a = nullptr;
  Matrix b{};
  struct Low {
    const float* z = nullptr;  // f32 [M,rank]; null: none
    std::int64_t rank = 0;
    float scale = 1;
    Matrix b{};  // kind rows [N,rank] or columns [rank,N]
  } low{};
  StoreMode store = StoreMode::write;
  float* c = nullptr;
};

// One of several products with the same left operand X[M,K]: C[M,N] (+)= X B + z_scale * scale * (X first) second. The
// last term is the LoRA branch, whose z_scale * X first [M,rank] is written to z; rank 0: no branch.
struct FusedProduct {
  PackedProduct::Matrix b;
  std::int64_t n = 0;
  float* c = nullptr;  // null: see can_gate_alone()
  StoreMode store = StoreMode::write;
  struct {
    PackedProduct::Matrix first{}, second{};  // kinds rows or columns
    std::int64_t rank = 0;
    float* z = nullptr;
    float z_scale = 1, scale = 1;
  } low{};
};

// The panels of a right operand that a thread keeps for several blocks of attention.
struct KeptPanels {
  const std::uint16_t* at = nullptr;  // null: not kept
  std::int64_t stride = 0;            // between panels, in units of 16 bits
  std::int64_t end = 0;               // of the thread's memory for kept panels: in use, with these
};

struct BlockOperand {
  MatrixOperand dense;
  KeptPanels kept{};  // of the same matrix
};

// g[rank,columns] += scale * L[m,rank]^T X[m,columns], or g[columns,rank] if transposed: the gradient of a LoRA factor.
struct LoraGradient {
  std::int64_t m = 0, rank = 0, columns = 0;
  float scale = 1;
  const float* l = nullptr;
  Activations x;
  Transpose transpose = Transpose::no;
  float* g = nullptr;
};

class PackedGemm {
 public:
  // `workspace` is allocated by the first product and may be shared with other products of the device.
  PackedGemm(Device& device, const ProductKernels& kernels, DeviceBuffer<std::uint16_t>& workspace)
      : device_(device),
        kernels_(kernels.packed),
        gemm_kernels_(kernels.gemm),
        products_(kernels),
        workspace_(workspace) {}
  const ProductKernels& products() const { return products_; }
  // Gives back what it holds beside the workspace.
  void release() { tiles_ = {}, partial_ = {}; }
  void run(const PackedProduct& product);
  // C[m,n] (+)= alpha A[k,m]^T B[k,n] of f32 matrices.
  void run_transposed(const GemmShape& shape, const float* a, const float* b, float* c, float scale, StoreMode store);
  // The highest rank of a low-rank summand.
  std::int64_t most_fused_rank() const { return sizes::kMostFusedRank * 2 / stored(2); }

  // Whether multiply_fused() and add_lora_gradient() support an X of this shape.
  bool can_fuse(std::int64_t m, std::int64_t k) const;
  // Computes all branches in one dispatch: X is normalised, rounded and laid out once for all of them. If norm.inv is
  // set (to x.inv), the inverse RMS of the rows are computed first. `gated`, if not null and with two branches of the
  // same width, receives gelu(first) * second.
  struct RowNorm {
    float* inv = nullptr;
    float eps = 0;
  };
  void multiply_fused(std::int64_t m, std::int64_t k, const Activations& x, std::span<const FusedProduct> branches,
                      const RowNorm& norm, float* gated);
  // Whether multiply_fused() can compute `gated` of branches that have no C.
  bool can_gate_alone(std::int64_t k, std::span<const FusedProduct> branches) const;
  // multiply_fused() for at most kMaxSkinnyRows rows and forward branches whose weights are all of one kind (panels,
  // bf16x12 or int8). LoRA branches are computed by dot products, in another order than products of f32 have.
  bool fits_skinny(std::int64_t m, std::int64_t k) const;
  void multiply_skinny(std::int64_t m, std::int64_t k, const Activations& x, std::span<const FusedProduct> branches,
                       const RowNorm& norm, float* gated);
  void add_lora_gradient(const LoraGradient& gradient);

  // C[m,n] (+)= scale * op(A) op(B) of f32 blocks on the calling thread, for attention. `thread` is its index in the
  // pool. Call prepare() before, outside of the pool.
  void prepare();
  void block(std::int64_t thread, const GemmShape& shape, MatrixOperand a, const BlockOperand& b, const TileOutput& out,
             float scale);
  // Converts op(B) [depth, columns] once for several calls of block(), behind the first `used` elements of the thread's
  // memory for kept panels. They are valid until the thread computes another kind of product, and not kept if they do
  // not fit.
  KeptPanels keep(std::int64_t thread, MatrixOperand b, std::int64_t depth, std::int64_t columns, std::int64_t used);

  // A tile of A B^T; the thread that computed it uses it while it is in that core's cache.
  struct Tile {
    int thread;
    std::int64_t row, rows, column, columns;
    float* at;  // [rows, stride]
    std::int64_t stride;
  };
  // Calls `use` for every tile of A[m,k] B[n,k]^T, in an order that depends on the shape only; B packed. Tiles lie in
  // stripes of kStripe columns (the last may be narrower), and one thread computes a stripe.
  static constexpr std::int64_t kStripe = sizes::kLogitStripe;
  void stream_tiles(const GemmShape& shape, const float* a, const std::uint16_t* b,
                    const std::function<void(const Tile&)>& use);
  // C[m,n] = G[m,k] B[k,n], B packed. `fill` writes a stripe of G, laid out as gemm_kernels.h says: rows [row, row +
  // rows) and columns [column, column + columns). Threads share the depth; their sums are added in order. `max_rows` >=
  // m: the most rows of any later call.
  struct Stripe {
    std::int64_t row, rows, column, columns;
  };
  void multiply_stripes(const GemmShape& shape, std::int64_t max_rows, const std::uint16_t* b,
                        const std::function<void(const Stripe&, std::uint16_t*)>& fill, float* c);

 private:
  struct Range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  struct Workspace {
    std::uint16_t *a, *b, *z, *low;
  };
  struct LeftOperand;
  struct Source {  // memory that a later part reads
    const std::uint16_t* at = nullptr;
    std::int64_t elements = 0;  // of 16 bits
  };
  struct Part {  // columns of a branch
    const FusedProduct& branch;
    Range columns;
    Source next{};  // what is read after them, prefetched while they are computed
  };
  Source source_of(const FusedProduct& branch, std::int64_t k, Range columns) const;
  std::int64_t stored(std::int64_t k) const { return products_.stored(k); }
  // Row n of a packed [N, k_total], the first of a panel, from depth k on.
  const std::uint16_t* panels_at(const PackedProduct::Matrix& b, std::int64_t k_total, std::int64_t n,
                                 std::int64_t k) const {
    return b.packed + n * stored(k_total) + stored(k) * kPanelRows;
  }
  // Rows of A for a Strip: f32 rows without a scale are read in place, others are laid out in `out`.
  struct LaidOut {
    const std::uint16_t* at;
    std::int64_t stride;
  };
  LaidOut lay_out_rows(std::int64_t rows, std::int64_t k, float scale, MatrixView x, std::uint16_t* out);
  void pack_bf16(const PackedProduct::Matrix& b, std::int64_t k_total, std::int64_t n_total, Range depth, Range columns,
                 std::uint16_t* out);
  void pack_dense(MatrixOperand b, std::int64_t depth, std::int64_t columns, std::uint16_t* out);
  struct Share {  // a thread's share of the work
    std::int64_t thread, threads;
    Range of(std::int64_t total, std::int64_t unit) const;
  };
  Workspace workspace(std::int64_t thread);
  void run_skinny(const PackedProduct& p, Range columns, const Workspace& w);
  void skinny_columns(const GemmShape& shape, const PackedProduct::Matrix& b, Range columns, const Workspace& w,
                      float* c, StoreMode store);
  void skinny_products(std::int64_t m, std::int64_t k, const Activations& x, std::span<const FusedProduct> branches,
                       const RowNorm& norm, Share share);
  void run_int8(const PackedProduct& p, Range columns, const Workspace& w);
  void run_blocked(const PackedProduct& p, Range rows, Range columns, const Workspace& w);
  void run_grouped(const PackedProduct& p, Range rows, Range columns, const Workspace& w);
  void multiply_depths(const LeftOperand& left, Range rows, const Part& part, const Workspace& w);
  void multiply_block(const LeftOperand& left, Range rows, Range depth, const Part& part, const Workspace& w);
  void multiply_gated(const LeftOperand& left, Range rows, std::span<const FusedProduct> branches, const Workspace& w,
                      float* gated);
  void gate_alone(const LeftOperand& left, Range rows, std::span<const FusedProduct> branches, const Workspace& w,
                  float* gated);
  void multiply_low_rank(const LeftOperand& left, Range rows, Range depth, const FusedProduct& branch,
                         const Workspace& w);
  // Packs panels of `columns` and `depth` of a matrix [k_total, n_total] that is not stored in panels.
  void pack(const PackedProduct::Matrix& b, std::int64_t k_total, std::int64_t n_total, Range depth, Range columns,
            std::uint16_t* out);
  // The greatest depth of panels that are packed before use.
  std::int64_t packed_depth() const { return sizes::kPanelDepth * 2 / stored(2); }
  // Parts of the depth, which begin at multiples of depth_unit().
  std::int64_t depths_of(std::int64_t k) const;
  std::int64_t depth_unit() const { return products_.unit == Unit::f32 ? sizes::kF32Run : sizes::kBf16x12Depth; }
  std::int64_t groups_size(std::int64_t rows, std::int64_t depth) const;
  std::int64_t block_rows(std::int64_t depth) const;
  std::int64_t row_unit() const { return gemm_kernels_.row_unit; }

  Device& device_;
  const PackedKernels& kernels_;
  const GemmKernels& gemm_kernels_;
  const ProductKernels& products_;
  DeviceBuffer<std::uint16_t>& workspace_;
  DeviceBuffer<float> tiles_, partial_;
};

}  // namespace mw::engine
