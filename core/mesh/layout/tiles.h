// SPDX-License-Identifier: Apache-2.0
// Padding of arrays to memory tiles, as XLA does on TPUs. Plain values; any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/hardware/target.h"

namespace mw::mesh {

struct TileRule {  // multiples to which the last two dimensions are padded; 1: no padding
  std::int64_t rows = 1, columns = 1;
};
TileRule tile_of(const hardware::Chip& chip, int bytes_per_element);
// Second-minor sizes up to half a tile use smaller tiles (openxla/xla tiled_layout documentation). A vector is one row.
std::int64_t padded_bytes(std::span<const std::int64_t> shape, int bytes_per_element, const TileRule& tile);
inline std::int64_t padded_bytes(const std::vector<std::int64_t>& shape, int bytes_per_element, const TileRule& tile) {
  return padded_bytes(std::span(shape), bytes_per_element, tile);
}

}  // namespace mw::mesh
