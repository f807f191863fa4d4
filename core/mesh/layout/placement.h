// SPDX-License-Identifier: Apache-2.0
// Assigns a PartitionSpec to every tensor of a model and computes which piece each device holds. Plain values; any
// thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "core/mesh/layout/mesh.h"
#include "core/model/inventory.h"

namespace mw::mesh {

using mw::to_string;

// Per tensor dimension the mesh axes that split it, outermost first; empty: not split. May be shorter than the rank.
struct PartitionSpec {
  std::vector<std::vector<std::string>> dims;
  bool operator==(const PartitionSpec&) const = default;
};
std::string to_text(const PartitionSpec& spec);  // "(tp, fsdp, -)", "((data, fsdp), -)", "()"
// Parses what to_text() and JAX write: None for -, quotes, a P or PartitionSpec before it. Throws Error SPEC-SYNTAX.
PartitionSpec parse_spec(std::string_view text);

struct ShardingRule {   // the first matching rule replaces the preset
  std::string pattern;  // regex, searched in the logical name and the Tunix path ("." matches "/")
  PartitionSpec spec;   // for Tunix's fused K and V with or without its leading axis
  bool operator==(const ShardingRule&) const = default;
};
// Tunix attaches one A to its fused K and V tensor, PEFT one to each projection. by_preset: fused_kv with
// Preset::tunix.
enum class AdapterForm { by_preset, separate, fused_kv };
// How the devices of the axis "ep" share the experts of a layer: not at all, or each holds some of them whole and
// tokens are sent to the devices of their experts and back. The rows of all other layers are then split over the axis.
enum class ExpertParallel { off, on };
inline constexpr std::string_view kExpertAxis = "ep";
struct ShardingRules {
  Preset preset = Preset::tunix;
  std::vector<ShardingRule> overrides{};
  AdapterForm adapters = AdapterForm::by_preset;
  ExpertParallel experts = ExpertParallel::off;
  bool operator==(const ShardingRules&) const = default;
};

enum class ShardingUse { training, sampling };

// How to split a dimension that its axes do not divide: report a problem; make the last pieces smaller (FSDP2, vLLM's
// vocabulary); or, if the axes are a multiple of it, keep a piece on several devices (vLLM's KV heads).
enum class UnevenSplit { refused, padded, repeated };

// One tensor on the mesh.
struct PlacedTensor {
  std::string name{};  // logical; "layers.3.q_proj.lora_a" for adapters, or .lora_b, .lora_m
  model::Role role = model::Role::embed;
  model::Role base = model::Role::embed;  // the adapted projection for adapters, else role
  int layer = -1;
  std::vector<model::Dim> dims{};
  PartitionSpec spec{};  // one entry per dimension; impossible entries are removed
  std::string rule{};    // "tunix", "override: <pattern>", "from layers.3.q_proj", "...; one A for K and V"
  std::vector<std::int64_t> shard{};   // shape on each device, rounded up if uneven
  std::vector<std::int64_t> pieces{};  // distinct pieces along each dimension
  std::int64_t shards = 1;             // distinct pieces of the tensor
  std::int64_t replicas = 1;           // devices that hold the same piece
  UnevenSplit uneven = UnevenSplit::refused;
  std::int64_t elements() const;  // of a shard
  std::int64_t total() const;     // of the whole tensor
};

struct AdapterShape {  // one adapted projection
  model::Role role;
  int layer = 0, rank = 0;
  bool dora = false;  // with a magnitude for each output
};

struct Placement {
  std::vector<PlacedTensor> tensors;  // in inventory order
  // A, B and with DoRA the magnitudes of each; specs derived from the base's as Qwix does, magnitudes as its outputs.
  std::vector<PlacedTensor> adapters;
  // SPEC-AXIS, SPEC-TWICE, SPEC-RANK, SPEC-PATTERN and SPEC-UNUSED; TP-1, FSDP-1 or SPEC-DIVIDES (other axes) for
  // dimensions that do not divide, one problem for all layers with the same cause. `place` names tensor and dimension,
  // `fix` the legal sizes.
  std::vector<Problem> problems;
};
// Assigns a spec to every tensor. Reports an impossible spec as a problem and continues: the dimension stays unsplit if
// the axis is unknown or used twice, and is rounded up if it does not divide. A rule applies to adapters if its pattern
// contains "lora_", else to weights. Axis sizes below 1 count as 1.
Placement place(const model::TensorInventory& inventory, const Mesh& mesh, const ShardingRules& rules,
                const std::vector<AdapterShape>& adapters, ShardingUse use);
// The tensor or adapter of this name; null where the placement has none.
const PlacedTensor* find_tensor(const Placement& placement, std::string_view name);

struct IndexInterval {
  std::int64_t begin = 0, end = 0;
  bool operator==(const IndexInterval&) const = default;
};
// The range of each dimension that the device at row-major mesh position `device` holds; empty beyond the last uneven
// piece.
std::vector<IndexInterval> piece(const PlacedTensor& tensor, const Mesh& mesh, int device);
// The index of that piece among the distinct pieces, row-major over the dimensions; -1 if the device holds none.
std::int64_t piece_index(const PlacedTensor& tensor, const Mesh& mesh, int device);
std::string_view axis_key(model::Axis axis);  // "kv_heads": for Problem::place and column titles
// The sizes of `axis` up to `most` that divide every dimension it splits, ascending; the other axes keep their sizes.
std::vector<int> legal_sizes(const Placement& placement, const Mesh& mesh, std::string_view axis, int most);

}  // namespace mw::mesh
