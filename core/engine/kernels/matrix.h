// SPDX-License-Identifier: Apache-2.0
// Shapes and operands of matrix products. Plain data without functions, because files built for one instruction set
// include it.
#pragma once
#include <cstdint>

namespace mw::engine {

struct GemmShape {  // C is m x n; products are summed over k
  std::int64_t m = 0, n = 0, k = 0;
};

struct GemmScaling {  // C = alpha A B + beta C; with beta 0 the old C is not read
  float alpha = 1, beta = 0;
};

// The result replaces the output or is added to it. extend: the products are added to the output one by one, which in
// f32 has other bits (packed_f32.h).
enum class StoreMode { write, accumulate, extend };

struct ColumnRange {
  std::int64_t begin = 0, end = 0;
};

struct MatrixView {  // row-major
  const float* data = nullptr;
  std::int64_t stride = 0;  // floats between rows
};

enum class Transpose { no, yes };

struct MatrixOperand {  // row-major before the transposition
  const float* data = nullptr;
  std::int64_t stride = 0;  // floats between rows
  Transpose transpose = Transpose::no;
};

struct MatrixOutput {
  float* data = nullptr;
  std::int64_t stride = 0;  // floats between rows
};

}  // namespace mw::engine
