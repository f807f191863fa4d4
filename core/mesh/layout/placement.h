// SPDX-License-Identifier: Apache-2.0
// PartitionSpecs, the rules that give one to each tensor, and what each device then holds. Plain values; any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/mesh/layout/mesh.h"
#include "core/mesh/layout/partition_spec.h"
#include "core/model/inventory.h"

namespace mw::mesh {

enum class Preset {
  tunix,     // ShardingConfig.get_default_sharding of Tunix
  megatron,  // heads, mlp and vocab over tp; nothing over fsdp (vLLM): KV heads repeat where tp is larger
  fsdp,      // PyTorch FSDP2: rows of every tensor as in the files over fsdp, padded; tp ignored
  replicated
};

struct ShardingRule {   // first match wins; before the preset
  std::string pattern;  // regex searched in the logical name and the Tunix path, "." and "/" alike; adapters: see place
  PartitionSpec spec;   // of a Tunix tensor shared by K and V with or without its leading axis
  bool operator==(const ShardingRule&) const = default;
};
// Tunix attaches one A to the fused K and V; PEFT one to each. by_preset: fused with Preset::tunix.
enum class AdapterForm { by_preset, separate, fused_kv };
struct ShardingRules {
  Preset preset = Preset::tunix;
  std::vector<ShardingRule> overrides{};
  AdapterForm adapters = AdapterForm::by_preset;
  bool operator==(const ShardingRules&) const = default;
};

enum class ShardingUse { training, sampling };

// A dimension that its axes do not divide: a problem; smaller last pieces (FSDP2, vLLM's vocabulary); or, where they
// are a multiple of it, the same piece on several devices (vLLM's KV heads).
enum class UnevenSplit { refused, padded, repeated };

// One tensor on the mesh.
struct PlacedTensor {
  std::string name{};  // logical; "layers.3.q_proj.lora_a" for adapters
  model::Role role = model::Role::embed;
  model::Role base = model::Role::embed;  // of adapters: the adapted projection; else role
  int layer = -1;
  std::vector<model::Dim> dims{};
  PartitionSpec spec{};  // as given, less what is not possible; as long as dims
  std::string rule{};    // "tunix", "override: <pattern>", "from layers.3.q_proj", "...; one A for K and V"
  std::vector<std::int64_t> shard{};   // shape on each device, rounded up where uneven
  std::vector<std::int64_t> pieces{};  // distinct pieces along each dimension
  std::int64_t shards = 1;             // distinct pieces
  std::int64_t replicas = 1;           // devices that hold the same piece
  UnevenSplit uneven = UnevenSplit::refused;
  std::int64_t elements() const;  // of a shard
  std::int64_t total() const;     // of the whole tensor
};

struct AdapterShape {  // one adapted projection
  model::Role role;
  int layer = 0, rank = 0;
};

struct Placement {
  std::vector<PlacedTensor> tensors;   // in inventory order
  std::vector<PlacedTensor> adapters;  // A then B of each, specs derived from the base's as Qwix does
  // SPEC-AXIS, SPEC-TWICE, SPEC-RANK, SPEC-PATTERN, SPEC-UNUSED, and for sizes that do not divide TP-1, FSDP-1 or
  // (other axes) SPEC-DIVIDES: one for all layers it concerns; place names tensor and dimension, the fix the legal
  // sizes.
  std::vector<Problem> problems;
};
// Every tensor gets its spec; what is not possible is a problem, and that dimension is left unsplit (an axis that is
// unknown or used twice) or rounded up (uneven), so that the page goes on. A rule is for adapters where its pattern
// contains "lora_". An axis size below 1 counts as 1.
Placement place(const model::TensorInventory& inventory, const Mesh& mesh, const ShardingRules& rules,
                const std::vector<AdapterShape>& adapters, ShardingUse use);
// The tensor or adapter of this name; null where the placement has none.
const PlacedTensor* find_tensor(const Placement& placement, std::string_view name);

struct Range {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};
// What the device at that mesh position (row-major) holds of each dimension; empty ranges where uneven pieces ran out.
std::vector<Range> piece(const PlacedTensor& tensor, const Mesh& mesh, int device);
// Which of the distinct pieces that is, row-major over dimensions; -1: none.
std::int64_t piece_index(const PlacedTensor& tensor, const Mesh& mesh, int device);
std::string_view axis_key(model::Axis axis);  // "kv_heads", as a place in problems and a head in tables
// The sizes of this axis that divide every dimension it splits, ascending, at most `most`; others' sizes as they are.
std::vector<int> legal_sizes(const Placement& placement, const Mesh& mesh, std::string_view axis, int most);

}  // namespace mw::mesh
