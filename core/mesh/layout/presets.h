// SPDX-License-Identifier: Apache-2.0
// The specs that sharding presets and rules of the user give to tensors. Functions: any thread.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/pattern.h"
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

// Matches tensors against the user's sharding rules and validates the specs of the rules. Not thread-safe.
class RuleMatcher {
 public:
  // Reports an invalid pattern in `problems`; its rule matches nothing. The arguments must outlive this object.
  RuleMatcher(const ShardingRules& rules, const Mesh& mesh, std::vector<Problem>& problems);
  // The index of the first rule that matches the name or the path, -1 if none does. Rules with "lora_" in their pattern
  // apply to adapters only, all others to weights only.
  int find(const std::string& name, const std::string& path, model::Role role);
  // The spec of the rule with `rank` entries, without impossible ones. Reports each kind of fault once per rule.
  PartitionSpec spec(int rule, const std::string& name, size_t rank, int tunix_slot);
  void report_unused();

 private:
  bool matches(size_t i, const std::string& name, const std::string& path);
  void report(size_t i, const Error& error);
  void report_once(size_t i, const char* id, const std::string& axis, Problem problem);
  std::string place(size_t i) const;
  std::string shown(size_t i) const;

  const ShardingRules& rules_;
  const Mesh& mesh_;
  std::vector<Problem>& problems_;
  std::vector<std::optional<Pattern>> patterns_;
  std::vector<bool> used_;
  std::set<std::tuple<size_t, std::string, std::string>> reported_;  // rule, id, axis
};

}  // namespace mw::mesh
