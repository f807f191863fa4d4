// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/dora.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace mw::engine {
namespace {

constexpr float kLeast = std::numeric_limits<float>::min();  // a row of zeros stays one

float norm_of(double squares) {
  return std::max(static_cast<float>(std::sqrt(squares)), kLeast);
}

// each(row, sum of the squares of W + scaling B A in it)
template <class Each>
void for_each_row(Device& device, const Weight& w, const Adapter& a, const Each& each) {
  const VectorKernels& kernels = vector_kernels();
  device.pool.parallel_for(a.out, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<size_t>(a.in));
    for (std::int64_t j = begin; j < end; ++j) {
      read_rows(w, j, row);
      for (int k = 0; k < a.rank; ++k) kernels.add(a.in, a.a + k * a.in, a.scaling * a.b[j * a.rank + k], row.data());
      each(j, kernels.dot(a.in, row.data(), row.data()));
    }
  });
}

}  // namespace

void update_row_norms(Device& device, const Weight& w, const Adapter& a) {
  for_each_row(device, w, a, [&](std::int64_t row, double squares) { a.norm[row] = norm_of(squares); });
}

void write_row_squares(Device& device, const Weight& w, const Adapter& a) {
  for_each_row(device, w, a, [&](std::int64_t row, double squares) { a.norm[row] = static_cast<float>(squares); });
}

void take_square_roots(const Adapter& a) {
  for (std::int64_t row = 0; row < a.out; ++row) a.norm[row] = norm_of(a.norm[row]);
}

float initial_magnitude(std::span<const float> row) {
  return norm_of(vector_kernels().dot(static_cast<std::int64_t>(row.size()), row.data(), row.data()));
}

void scale_outputs(const Adapter& a, const OutputRows& rows, ColumnRange columns) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const float* const x = rows.x + i * a.out;
    float* const y = rows.y + i * a.out;
    for (std::int64_t j = columns.begin; j < columns.end; ++j) y[j] = x[j] * (a.m[j] / a.norm[j]);
  }
}

void scale_outputs(Device& device, const Adapter& a, const OutputRows& rows) {
  device.pool.parallel_for(rows.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    scale_outputs(a, {end - begin, rows.x + begin * a.out, rows.y + begin * a.out}, {0, a.out});
  });
}

void add_magnitude_gradient(Device& device, const Adapter& a, std::int64_t rows, const float* dy, const float* y) {
  constexpr std::int64_t kStripe = 64;  // columns whose sums a thread keeps at once
  device.pool.parallel_for(a.out, kStripe, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kStripe) {
      const std::int64_t count = std::min(kStripe, end - first);
      double sums[kStripe] = {};
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < count; ++j) {
          const std::int64_t at = i * a.out + first + j;
          sums[j] += static_cast<double>(dy[at]) * static_cast<double>(y[at]);
        }
      for (std::int64_t j = 0; j < count; ++j)
        a.dm[first + j] += static_cast<float>(sums[j] / static_cast<double>(a.norm[first + j]));
    }
  });
}

}  // namespace mw::engine
