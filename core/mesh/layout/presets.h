// SPDX-License-Identifier: Apache-2.0
// The specs that sharding presets give to tensors. Pure functions; any thread.
#pragma once
#include "core/mesh/layout/placement.h"

namespace mw::mesh {

struct PresetSpec {
  PartitionSpec spec;
  UnevenSplit uneven = UnevenSplit::refused;
};
PresetSpec preset_spec(const model::TensorInventory& inventory, const model::Tensor& tensor, Preset preset,
                       ShardingUse use, const Mesh& mesh);
// The spec under expert parallelism: experts over the axis "ep", their width as MaxText and vLLM split it. MaxText also
// splits the other weights over it, as over fsdp; Megatron-LM and vLLM keep copies.
PresetSpec over_experts(PresetSpec spec, const model::Tensor& tensor, Preset preset);

// True for dimensions that the projection sums over (an adapter's A has these), false for its outputs (B has these).
bool contracted(model::Role role, model::Axis axis);
// The spec of an adapter's A (contracted dimensions, rank), B (rank, output dimensions) or magnitudes (output
// dimensions), derived from its base.
PresetSpec adapter_spec(const PlacedTensor& base, model::Role part, const std::vector<model::Dim>& dims, Preset preset,
                        const Mesh& mesh);
// Whether K and V share one A, because their base is one tensor in Tunix.
bool fuses_kv(const ShardingRules& rules);

}  // namespace mw::mesh
