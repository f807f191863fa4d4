// SPDX-License-Identifier: Apache-2.0
// The mesh sizes that a model allows under its sharding rules: every split dimension must divide. A search computes the
// constraints once and tests thousands of meshes. Plain values; any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hardware/target.h"
#include "core/mesh/layout/placement.h"

namespace mw::mesh {

// The product of the axes' sizes must divide `size`; UnevenSplit::repeated also allows a multiple of it. Tensors with
// equal constraints share one.
struct SizeConstraint {
  std::vector<std::string> axes;
  std::int64_t size = 0;
  model::Axis dim = model::Axis::one;
  model::Role role = model::Role::embed;  // the adapted projection for adapters
  int layer = -1;
  std::string tensor;  // the first tensor with this constraint: "layers.5.k_proj"
  UnevenSplit uneven = UnevenSplit::refused;
};
std::vector<SizeConstraint> size_constraints(const model::TensorInventory& inventory, const Mesh& mesh,
                                             const ShardingRules& rules, const std::vector<AdapterShape>& adapters,
                                             ShardingUse use);
bool is_satisfied(const SizeConstraint& need, const Mesh& mesh);
bool is_legal(const std::vector<SizeConstraint>& needs, const Mesh& mesh);

// All meshes over these axes with `devices` devices, in lexicographic order of their sizes.
std::vector<Mesh> factorisations(const std::vector<std::string>& axes, int devices);

// The legal mesh with `devices` devices that differs from `mesh` by the fewest doublings and halvings; among equals the
// one whose batch axes divide `batch`. Only the axes in `splitting` may have more than one device, see
// splitting_axes(); data only where the mesh has it or nothing else splits rows. Returns a mesh without axes if no mesh
// is legal.
Mesh nearest_legal(const std::vector<SizeConstraint>& needs, const Mesh& mesh, int devices, std::int64_t batch,
                   const std::vector<std::string>& splitting = {"fsdp", "tp"});

// The number of devices with different rows: the product of the batch axes fsdp and data.
int batch_devices(const Mesh& mesh);

// Padding of arrays to memory tiles, as XLA does on TPUs.
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
