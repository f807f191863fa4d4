// SPDX-License-Identifier: Apache-2.0
// SHARD-4, ours: a rule that splits tensors otherwise than their block computes. The result is the same; every use
// gathers them first.
#include <algorithm>
#include <map>

#include "core/lint/rules.h"
#include "core/mesh/collectives/collectives.h"

namespace mw::lint {

using mesh::Cause;
using mesh::Collective;
using mesh::PlacedTensor;
using mesh::Placement;
using mesh::Recompute;
using mesh::ShardingRule;
using mesh::ShardingRules;
using mesh::StepKind;
using mesh::StepShape;

namespace {

StepShape step_of(const CheckInput& input) {
  StepShape step;
  step.work = input.purpose == Purpose::serve ? StepKind::decode
              : input.lora                    ? StepKind::train_lora
                                              : StepKind::train_full;
  step.weight_bytes = input.dtype == model::WeightType::f32 ? 4 : input.dtype == model::WeightType::int8 ? 1 : 2;
  step.recompute = input.remat == model::Remat::none ? Recompute::none : Recompute::layers;
  return step;
}

// Bytes that a device sends in a step for nothing but the specs, by tensor in the order of the collectives.
using Clumsy = std::vector<std::pair<std::string, Bytes>>;
Clumsy clumsy(const CheckInput& input, const Placement& placement) {
  Clumsy out;
  for (const Collective& c : collectives(input.config, input.mesh, placement, step_of(input))) {
    if (c.cause != Cause::inefficient_spec) continue;
    if (out.empty() || out.back().first != c.tensor) out.emplace_back(c.tensor, Bytes(0));
    out.back().second += c.moved * c.calls;
  }
  return out;
}

struct Saved {
  Bytes bytes;
  std::string tensor;  // the first that is gathered no more, or less
};
Saved saved(const Clumsy& before, const Clumsy& after) {
  std::map<std::string, Bytes> left;
  Saved out;
  for (const auto& [tensor, bytes] : after) left[tensor] += bytes, out.bytes -= bytes;
  for (const auto& [tensor, bytes] : before) {
    out.bytes += bytes;
    if (out.tensor.empty() && bytes > left[tensor]) out.tensor = tensor;
  }
  return out;
}

std::string spec_text(const Placement& placement, const std::string& tensor) {
  for (const auto* list : {&placement.tensors, &placement.adapters})
    for (const PlacedTensor& t : *list)
      if (t.name == tensor) return to_text(t.spec);
  return {};
}

// What a rule costs is what goes away with it.
void shard_4(const CheckInput& input, Report& report) {
  if (input.mesh.devices() == 1 || input.rules.overrides.empty()) return;
  const auto placed = [&](const ShardingRules& rules) {
    return place(input.inventory, input.mesh, rules, adapter_shapes(input), use_of(input));
  };
  const Placement given = placed(input.rules);
  if (std::any_of(given.problems.begin(), given.problems.end(),
                  [](const Problem& p) { return p.severity == Severity::error; }))
    return;  // other rules have the word
  const Clumsy all = clumsy(input, given);
  if (all.empty()) return;
  for (size_t i = 0; i < input.rules.overrides.size(); ++i) {
    if (input.rules.overrides[i].pattern.find("lora_") != std::string::npos) continue;  // SHARD-3 says it
    ShardingRules without = input.rules;
    without.overrides.erase(without.overrides.begin() + static_cast<std::ptrdiff_t>(i));
    const Placement better = placed(without);
    const Saved less = saved(all, clumsy(input, better));
    if (less.bytes.value <= 0) continue;
    Json left = Json::array();
    for (const ShardingRule& rule : without.overrides) left.push_back(rule.pattern + " = " + to_text(rule.spec));
    report.findings.push_back({.id = "SHARD-4",
                               .severity = Severity::warning,
                               .message = "the rule \"" + input.rules.overrides[i].pattern +
                                          "\" splits tensors otherwise than their matmuls " + "compute, " +
                                          less.tensor + " for one: each device sends " + to_text(less.bytes) +
                                          " a step to gather them",
                               .place = "sharding.overrides",
                               .found = to_text(input.rules.overrides[i].spec),
                               .expected = spec_text(better, less.tensor) + " for " + less.tensor,
                               .fixes = {{"Remove the rule", "", {{"sharding.overrides", left}}}}});
  }
}

}  // namespace

std::vector<CheckRule> inefficient_sharding_rules() {
  return {{"SHARD-4",
           Severity::warning,
           {Stack::engine, Stack::tunix, Stack::vllm_tpu},
           "A rule splits a tensor otherwise than its matmul computes",
           "The program is right whatever the specs; XLA, and this engine, gather such a tensor before every use and "
           "scatter its gradient after.",
           "jax sharding in types and propagation; counted by core/mesh/collectives/collectives.h",
           shard_4}};
}

}  // namespace mw::lint
