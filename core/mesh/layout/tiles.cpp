// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/tiles.h"

// Memory tiles of XLA on TPUs: openxla/xla docs on tiled layout; jax/_src/pallas/mosaic/tpu_info.py.
#include <algorithm>

namespace mw::mesh {
namespace {

std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace

TileRule tile_of(const hardware::Chip& chip, int bytes_per_element) {
  const std::int64_t rows = bytes_per_element >= 4   ? chip.tile_rows_f32
                            : bytes_per_element == 2 ? chip.tile_rows_bf16
                                                     : chip.tile_rows_8bit;
  return {std::max<std::int64_t>(1, rows), std::max<std::int64_t>(1, chip.tile_columns)};
}

std::int64_t padded_bytes(std::span<const std::int64_t> shape, int bytes_per_element, const TileRule& tile) {
  if (shape.empty()) return bytes_per_element;
  std::int64_t bytes = bytes_per_element * round_up(shape.back(), tile.columns);
  if (shape.size() == 1) return bytes;
  const std::int64_t rows = shape[shape.size() - 2];
  std::int64_t step = tile.rows;
  const std::int64_t least = bytes_per_element == 1 ? 4 : 2;  // a 32-bit word holds four rows of bytes
  while (step / 2 >= std::max(rows, least)) step /= 2;
  bytes *= round_up(rows, step);
  for (size_t i = 0; i + 2 < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

}  // namespace mw::mesh
