// SPDX-License-Identifier: Apache-2.0
// The spec that a preset gives a tensor. Any thread.
#pragma once
#include "core/mesh/layout/placement.h"

namespace mw::mesh {

struct PresetSpec {
  PartitionSpec spec;
  UnevenSplit uneven = UnevenSplit::refused;
};
PresetSpec preset_spec(const model::TensorInventory& inventory, const model::Tensor& tensor, Preset preset,
                       ShardingUse use, const Mesh& mesh);

// Dimensions of `base` that a matmul sums over (A of an adapter has these) and those it puts out (B).
bool contracted(model::Role role, model::Axis axis);
// Specs of an adapter's A (contracted dimensions, rank) and B (rank, output dimensions).
PresetSpec adapter_spec(const PlacedTensor& base, model::Role part, const std::vector<model::Dim>& dims, Preset preset,
                        const Mesh& mesh);
// One A for K and V: their base is one tensor in Tunix.
bool fuses_kv(const ShardingRules& rules);

std::string to_string(Preset preset);

}  // namespace mw::mesh
