// SPDX-License-Identifier: Apache-2.0
// SHARD-4: a sharding rule splits tensors differently from the computation of their block. The result is correct, but
// every use gathers the tensors first.
#include <algorithm>
#include <map>

#include "core/lint/rules/rules.h"
#include "core/mesh/collectives/collectives.h"

namespace mw::lint {

using mesh::Placement;
using mesh::StepKind;

namespace {

mesh::StepShape step_of(const CheckInput& input) {
  mesh::StepShape step;
  step.work = input.purpose == Purpose::serve ? StepKind::decode
              : input.lora                    ? StepKind::train_lora
                                              : StepKind::train_full;
  step.weight_bytes = input.dtype == model::WeightType::f32 ? 4 : input.dtype == model::WeightType::int8 ? 1 : 2;
  step.recompute = input.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers;
  return step;
}

// The bytes that a device sends in a step only because of inefficient specs, by tensor in the order of the collectives.
using AvoidableBytes = std::vector<std::pair<std::string, Bytes>>;
AvoidableBytes avoidable_bytes(const CheckInput& input, const Placement& placement) {
  AvoidableBytes out;
  for (const mesh::Collective& c : collectives(input.config, input.mesh, placement, step_of(input))) {
    if (c.cause != mesh::Cause::inefficient_spec) continue;
    if (out.empty() || out.back().first != c.tensor) out.emplace_back(c.tensor, Bytes(0));
    out.back().second += c.moved * c.calls;
  }
  return out;
}

struct Saving {
  Bytes bytes;
  std::string tensor;  // the first tensor whose gathers shrink
};
Saving saving_of(const AvoidableBytes& before, const AvoidableBytes& after) {
  std::map<std::string, Bytes> left;
  Saving out;
  for (const auto& [tensor, bytes] : after) left[tensor] += bytes, out.bytes -= bytes;
  for (const auto& [tensor, bytes] : before) {
    out.bytes += bytes;
    if (out.tensor.empty() && bytes > left[tensor]) out.tensor = tensor;
  }
  return out;
}

std::string spec_text(const Placement& placement, const std::string& tensor) {
  for (const auto* list : {&placement.tensors, &placement.adapters})
    for (const mesh::PlacedTensor& t : *list)
      if (t.name == tensor) return to_text(t.spec);
  return {};
}

// The cost of a rule is the traffic that disappears without it.
void shard_4(const CheckInput& input, const RuleReport& report) {
  if (input.mesh.devices() == 1 || input.rules.overrides.empty()) return;
  const auto placement = placement_of(input);
  const Placement& given = *placement;
  if (std::any_of(given.problems.begin(), given.problems.end(),
                  [](const Problem& p) { return p.severity == Severity::error; }))
    return;  // reported by other rules
  const AvoidableBytes all = avoidable_bytes(input, given);
  if (all.empty()) return;
  for (size_t i = 0; i < input.rules.overrides.size(); ++i) {
    if (input.rules.overrides[i].pattern.find("lora_") != std::string::npos) continue;  // reported by SHARD-3
    mesh::ShardingRules without = input.rules;
    without.overrides.erase(without.overrides.begin() + static_cast<std::ptrdiff_t>(i));
    const Placement better = place_with(input, without);
    const Saving less = saving_of(all, avoidable_bytes(input, better));
    if (less.bytes.value <= 0) continue;
    report.add({.message = "the rule \"" + input.rules.overrides[i].pattern +
                           "\" splits tensors differently from their matmuls, " + "such as " + less.tensor +
                           ": each device sends " + to_text(less.bytes) + " per step to gather them",
                .place = "sharding.overrides",
                .found = to_text(input.rules.overrides[i].spec),
                .expected = spec_text(better, less.tensor) + " for " + less.tensor,
                .fixes = {{"Remove the rule", "", {set_overrides(without.overrides)}}}});
  }
}

}  // namespace

std::vector<CheckRule> inefficient_sharding_rules() {
  return {{"SHARD-4",
           Severity::warning,
           {model::Stack::engine, model::Stack::tunix, model::Stack::vllm_tpu},
           "A sharding rule splits a tensor differently from its matmul",
           "The result is correct with any spec, but XLA and Meshwright's engine gather such a tensor before every use "
           "and scatter its gradient afterwards.",
           "jax sharding in types and propagation; counted by core/mesh/collectives/collectives.h",
           shard_4}};
}

}  // namespace mw::lint
