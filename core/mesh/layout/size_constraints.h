// SPDX-License-Identifier: Apache-2.0
// Which meshes a model allows under its sharding rules: every split dimension has to divide. Worked out once, asked of
// thousands of meshes by a search. Plain values; any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/mesh/layout/placement.h"

namespace mw::mesh {

// The product of these axes has to divide `size` (repeated: or be a multiple of it). One for all tensors that ask the
// same.
struct SizeConstraint {
  std::vector<std::string> axes;
  std::int64_t size = 0;
  model::Axis dim = model::Axis::one;
  model::Role role = model::Role::embed;  // of adapters: of the adapted projection
  int layer = -1;
  std::string tensor;  // the first that asks: "layers.5.k_proj"
  UnevenSplit uneven = UnevenSplit::refused;
};
std::vector<SizeConstraint> size_constraints(const model::TensorInventory& inventory, const Mesh& mesh,
                                             const ShardingRules& rules, const std::vector<AdapterShape>& adapters,
                                             ShardingUse use);
bool is_satisfied(const SizeConstraint& need, const Mesh& mesh);
bool is_legal(const std::vector<SizeConstraint>& needs, const Mesh& mesh);

// Every way to write `devices` as a product of sizes of these axes, the last axis fastest growing.
std::vector<Mesh> factorisations(const std::vector<std::string>& axes, int devices);

// The legal mesh of so many devices that is nearest to `mesh` (fewest doublings and halvings; of equals the one whose
// batch axes divide `batch`). Axes fsdp and tp are used where they are missing. No axes: there is none.
Mesh nearest_legal(const std::vector<SizeConstraint>& needs, const Mesh& mesh, int devices, std::int64_t batch);

// Devices that take different rows: the product of the batch axes (fsdp, data).
int batch_devices(const Mesh& mesh);

}  // namespace mw::mesh
