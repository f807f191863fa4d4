// SPDX-License-Identifier: Apache-2.0
// Rules of PartitionSpecs that the document gives: SHARD-2, and ours of specs that cannot be, that name nothing, or
// that put two tensors apart that belong together.
#include <algorithm>
#include <map>
#include <set>

#include "core/lint/rules.h"
#include "core/mesh/collectives/collectives.h"

namespace mw::lint {

using mesh::PartitionSpec;
using mesh::PlacedTensor;
using mesh::Placement;
using mesh::ShardingRule;
using mesh::StepKind;

namespace {

// The sharding rules without those of this pattern.
Fix drop_rule(const CheckInput& input, const std::string& pattern) {
  std::vector<ShardingRule> left = input.rules.overrides;
  std::erase_if(left, [&](const ShardingRule& rule) { return rule.pattern == pattern; });
  return {"Remove the rule", "", {set_overrides(left)}};
}

Fix use_spec(const CheckInput& input, size_t rule, const PartitionSpec& spec) {
  std::vector<ShardingRule> rules = input.rules.overrides;
  rules[rule].spec = spec;
  return {"Use " + to_text(spec), "", {set_overrides(rules)}};
}

// "override: <pattern>"
std::string pattern_of(const PlacedTensor& tensor) {
  constexpr std::string_view kOverride = "override: ";
  return tensor.rule.starts_with(kOverride) ? tensor.rule.substr(kOverride.size()) : std::string();
}

// --- Impossible specs ---

// The possible part of the rule's spec for the tensors that it matches: entries up to their rank, known axes, each
// once.
PartitionSpec possible(const CheckInput& input, const Placement& placement, const ShardingRule& rule) {
  PartitionSpec spec = rule.spec;
  size_t rank = spec.dims.size();
  for (const auto* list : {&placement.tensors, &placement.adapters})
    for (const PlacedTensor& t : *list)
      if (pattern_of(t) == rule.pattern) rank = std::min(rank, t.dims.size());
  for (size_t d = spec.dims.size(); d-- > 0 && spec.dims.size() > rank;)  // entries that split nothing go first
    if (spec.dims[d].empty()) spec.dims.erase(spec.dims.begin() + static_cast<std::ptrdiff_t>(d));
  spec.dims.resize(std::min(spec.dims.size(), rank));
  std::set<std::string> seen;
  for (auto& axes : spec.dims)
    std::erase_if(axes, [&](const std::string& axis) { return !input.mesh.has(axis) || !seen.insert(axis).second; });
  return spec;
}

void spec_problems(const CheckInput& input, std::string_view id, const RuleReport& report) {
  if (input.rules.overrides.empty()) return;
  const auto placement = placement_of(input);
  for (const Problem& p : placement->problems) {
    if (p.id != id) continue;
    for (size_t i = 0; i < input.rules.overrides.size(); ++i) {
      const ShardingRule& rule = input.rules.overrides[i];
      if (!p.place.starts_with("sharding rule " + std::to_string(i + 1) + ",")) continue;
      std::vector<Fix> fixes;
      if (const PartitionSpec spec = possible(input, *placement, rule); spec != rule.spec)
        fixes.push_back(use_spec(input, i, spec));
      fixes.push_back(drop_rule(input, rule.pattern));
      report.add({.message = "\"" + rule.pattern + "\": " + p.message,
                  .place = "sharding.overrides",
                  .found = p.found,
                  .expected = p.expected,
                  .fixes = std::move(fixes)});
    }
  }
}

// --- Unsharded tensors ---

constexpr std::int64_t kLargeLeaf = 64 << 20;  // bytes
constexpr std::int64_t kLargeShare = 20;       // or this part of the model

struct Whole {
  std::int64_t bytes = 0;
  const char* what = "";  // besides the tensor itself
};
// Bytes of a tensor with its gradient and moments in f32, which training shards like the tensor.
Whole whole_bytes(const CheckInput& input, const PlacedTensor& tensor) {
  const bool learns = input.purpose == Purpose::train && !input.lora;
  return {tensor.total() * (learns ? 2 + 12 : 2), learns ? " with its gradient and optimizer state" : ""};
}

void shard_2(const CheckInput& input, const RuleReport& report) {
  const int splitting = input.mesh.devices() / input.mesh.size("data");
  if (splitting == 1) return;
  const auto add = [&](const std::string& message, std::int64_t bytes, std::string place, std::vector<Fix> fixes) {
    report.add({.message = message,
                .place = std::move(place),
                .found = to_text(Bytes(bytes)) + " on every device",
                .expected = "split over the mesh",
                .fixes = std::move(fixes)});
  };
  if (input.stack == model::Stack::tunix && input.config.family == model::Family::gemma4 &&
      is_older(input, {"google-tunix", "0.1.7", "whether the embedding is split"}, report))
    add("this Tunix keeps Gemma 4's embedding whole on every device",
        std::int64_t{2} * input.config.vocab * input.config.dim, "stack.versions",
        {{"Use google-tunix 0.1.7", "", {set_version(input, "google-tunix", "0.1.7")}}});
  if (input.rules.preset == mesh::Preset::replicated || input.rules.overrides.empty()) return;  // requested, or no rule
  const std::int64_t large = std::min(kLargeLeaf, 2 * input.inventory.parameters() / kLargeShare);
  const auto placement = placement_of(input);
  for (const PlacedTensor& t : placement->tensors) {
    const std::string pattern = pattern_of(t);
    if (pattern.empty() || t.role == model::Role::router_proj || t.shards > 1 || t.total() * 2 < large) continue;
    const auto [bytes, what] = whole_bytes(input, t);
    add("the rule \"" + pattern + "\" keeps " + t.name + what + " whole on every device", bytes, "sharding.overrides",
        {drop_rule(input, pattern)});
    return;
  }
}

// --- Adapters sharded differently from their bases ---

// The number of devices that hold different pieces.
std::vector<std::set<std::string>> split_by(const CheckInput& input, const PlacedTensor& tensor) {
  std::vector<std::set<std::string>> out;
  for (const auto& axes : tensor.spec.dims) {
    out.emplace_back();
    for (const std::string& axis : axes)
      if (input.mesh.size(axis) > 1) out.back().insert(axis);
  }
  return out;
}

void shard_3(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input) || input.mesh.devices() == 1) return;
  mesh::ShardingRules derived = input.rules;
  std::erase_if(derived.overrides, [](const ShardingRule& r) { return r.pattern.find("lora_") != std::string::npos; });
  if (derived.overrides.size() == input.rules.overrides.size()) return;
  const auto placement = placement_of(input);
  const Placement &given = *placement, follows = place_with(input, derived);
  std::map<std::string, size_t> apart;  // by rule: the first adapter
  for (size_t i = 0; i < given.adapters.size(); ++i) {
    const PlacedTensor& a = given.adapters[i];
    const std::string pattern = pattern_of(a);
    if (!pattern.empty() && split_by(input, a) != split_by(input, follows.adapters[i])) apart.emplace(pattern, i);
  }
  std::vector<ShardingRule> left = input.rules.overrides;
  std::erase_if(left, [&](const ShardingRule& rule) { return apart.contains(rule.pattern); });
  for (const auto& [pattern, i] : apart) {
    const PlacedTensor &a = given.adapters[i], &b = follows.adapters[i];
    const bool whole = a.shards == 1 && b.shards > 1;
    report.add({.message = "the rule \"" + pattern + "\" shards " + a.name + " differently from its base: " +
                           (whole ? "whole on every device where the base is split"
                                  : "it has to move before each use, its gradient after"),
                .place = "sharding.overrides",
                .found = to_text(a.spec),
                .expected = to_text(b.spec) + ", as the base gives it",
                .fixes = {{apart.size() > 1 ? "Remove these rules" : "Remove the rule", "", {set_overrides(left)}}}});
  }
}

// --- SHARD-4: a rule splits tensors differently from the computation of their block: every use gathers them ---

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

std::vector<CheckRule> spec_rules() {
  const std::vector<model::Stack> sharded{model::Stack::engine,   model::Stack::tunix,        model::Stack::vllm_tpu,
                                          model::Stack::vllm_gpu, model::Stack::tensorrt_llm, model::Stack::sglang,
                                          model::Stack::jetstream},
      trains{model::Stack::engine, model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp};
  constexpr std::string_view kNamed = "jax.sharding.NamedSharding";
  return {
      {"SPEC-RANK", Severity::error, kAllStacks, "A spec with more entries than the tensor has dimensions",
       "NamedSharding refuses a spec that is longer than the rank; before qwix 0.1.6 adapters got such specs.",
       "jax.sharding.NamedSharding.check_compatible_aval; qwix 9e88701, 704a40a",
       [](const CheckInput& f, const RuleReport& r) { spec_problems(f, "SPEC-RANK", r); }, RuleEffect::refuses_split},
      {"SPEC-AXIS", Severity::error, kAllStacks, "A spec uses an axis that the mesh does not define",
       "NamedSharding refuses it; the tensor would not be split along that dimension.", kNamed,
       [](const CheckInput& f, const RuleReport& r) { spec_problems(f, "SPEC-AXIS", r); }, RuleEffect::refuses_split},
      {"SPEC-TWICE", Severity::error, kAllStacks, "A spec uses an axis on two dimensions",
       "A device cannot hold different parts along two dimensions of one axis; NamedSharding refuses it.", kNamed,
       [](const CheckInput& f, const RuleReport& r) { spec_problems(f, "SPEC-TWICE", r); }, RuleEffect::refuses_split},
      {"SPEC-PATTERN", Severity::error, kAllStacks, "A sharding rule whose pattern is not a regular expression",
       "The rule applies to no tensor.", "regular expressions of sharding.overrides",
       [](const CheckInput& f, const RuleReport& r) { spec_problems(f, "SPEC-PATTERN", r); },
       RuleEffect::refuses_split},
      {"SPEC-UNUSED", Severity::warning, kAllStacks, "A sharding rule that matches no tensor",
       "A typing error in the pattern leaves all tensors unchanged without a warning.",
       "regular expressions of sharding.overrides",
       [](const CheckInput& f, const RuleReport& r) { spec_problems(f, "SPEC-UNUSED", r); }},
      {"SHARD-2", Severity::warning, sharded, "A large tensor is replicated on every device",
       "Gemma 4's input embedding had no annotation before Tunix 0.1.7. Gradient and optimizer state of a trained "
       "tensor lie as the tensor does.",
       "tunix 388c8a2b (2026-05-11)", shard_2},
      {"SHARD-3", Severity::warning, trains, "A LoRA factor is split differently from its base",
       "A of the input's and B of the output's dimensions follow the base; a factor that does not is gathered before "
       "each use, or replicated with its moments on every device.",
       "qwix lora.py (specs of A and B from the base's); qwix 9e88701; tunix d92dd152", shard_3},
      {"SHARD-4",
       Severity::warning,
       {model::Stack::engine, model::Stack::tunix, model::Stack::vllm_tpu},
       "A sharding rule splits a tensor differently from its matmul",
       "The result is correct with any spec, but XLA and Meshwright's engine gather such a tensor before every use "
       "and scatter its gradient afterwards.",
       "jax sharding in types and propagation; counted by core/mesh/collectives/collectives.h",
       shard_4},
  };
}

}  // namespace mw::lint
