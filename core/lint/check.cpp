// SPDX-License-Identifier: Apache-2.0
#include "core/lint/check.h"

#include <algorithm>
#include <charconv>

#include "core/lint/rules.h"

namespace mw::lint {

using mesh::ShardingUse;

namespace {

std::vector<CheckRule> all_rules() {
  std::vector<CheckRule> all;
  for (auto part : {lora_rules, peft_rules, mesh_rules, spec_rules, load_rules, export_rules, text_rules, server_rules})
    for (CheckRule& rule : part()) all.push_back(std::move(rule));
  return all;
}

bool applies(const CheckRule& rule, model::Stack stack) {
  return rule.stacks.empty() || std::find(rule.stacks.begin(), rule.stacks.end(), stack) != rule.stacks.end();
}

Json pairs(const std::map<std::string, std::string>& values, std::string_view between) {
  Json list = Json::array();
  for (const auto& [name, value] : values) list.push_back(name + std::string(between) + value);
  return list;
}

// Removes and returns the next number of a dotted version; -1 at its end.
int next_number(std::string_view& version) {
  int n = -1;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), n);
  if (error != std::errc{}) {
    version = {};
    return -1;
  }
  version.remove_prefix(static_cast<size_t>(end - version.data()));
  if (version.starts_with('.'))
    version.remove_prefix(1);
  else
    version = {};
  return n;
}

}  // namespace

void RuleReport::add(Finding finding) const {
  add(std::move(finding), rule_.severity);
}

void RuleReport::add(Finding finding, Severity severity) const {
  finding.id = rule_.id;
  finding.severity = severity;
  report_.findings.push_back(std::move(finding));
}

void RuleReport::unchecked(const std::string& needs) const {
  report_.unchecked.push_back({std::string(rule_.id), needs});
}

std::span<const CheckRule> check_rules() {
  static const std::vector<CheckRule> kRules = all_rules();
  return kRules;
}

const CheckRule* find_rule(std::string_view id) {
  for (const CheckRule& rule : check_rules())
    if (rule.id == id) return &rule;
  return nullptr;
}

Report check(const CheckInput& given) {
  CheckInput input = given;
  input.derived = std::make_shared<DerivedInput>();
  Report report;
  for (const CheckRule& rule : check_rules())
    if (applies(rule, input.stack)) rule.look(input, {rule, report});
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return report;
}

std::vector<Finding> check_refusals(const CheckInput& input) {
  Report report;
  for (const CheckRule& rule : check_rules())
    if (rule.effect == RuleEffect::refuses && applies(rule, input.stack)) rule.look(input, {rule, report});
  std::erase_if(report.findings, [](const Finding& f) { return f.severity != Severity::error; });
  return std::move(report.findings);
}

bool is_refusal(std::string_view id, Severity severity) {
  const CheckRule* rule = find_rule(id);
  return rule && severity == Severity::error && rule->effect != RuleEffect::advises;
}

int compare_versions(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const int x = std::max(0, next_number(a)), y = std::max(0, next_number(b));
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

bool is_older(const CheckInput& input, const VersionQuestion& question, const RuleReport& report) {
  const std::string package = question.package;
  const auto at = input.versions.find(package);
  if (at != input.versions.end()) return compare_versions(at->second, question.limit) < 0;
  report.unchecked("the version of " + package + " (stack.versions), " + question.text);
  return false;
}

std::vector<Edit> mesh_edits(const mesh::Mesh& from, const mesh::Mesh& to) {
  std::vector<Edit> edits;
  for (const mesh::MeshAxis& axis : from.axes)
    if (!to.has(axis.name)) edits.push_back({"mesh." + axis.name, nullptr});
  for (const mesh::MeshAxis& axis : to.axes)
    if (!from.has(axis.name) || from.size(axis.name) != axis.size) edits.push_back({"mesh." + axis.name, axis.size});
  return edits;
}

Edit set_version(const CheckInput& input, const std::string& package, std::string_view version) {
  auto versions = input.versions;
  versions[package] = version;
  return {"stack.versions", pairs(versions, "==")};
}

Edit set_model_field(const CheckInput& input, const std::string& field, const std::string& value) {
  auto fields = input.model_config;
  fields[field] = value;
  return {"stack.model_config", pairs(fields, "=")};
}

Edit set_overrides(const std::vector<mesh::ShardingRule>& rules) {
  Json list = Json::array();
  for (const mesh::ShardingRule& rule : rules) list.push_back(rule.pattern + " = " + to_text(rule.spec));
  return {"sharding.overrides", std::move(list)};
}

std::vector<mesh::AdapterShape> adapter_shapes(const CheckInput& input) {
  std::vector<mesh::AdapterShape> out;
  if (!input.lora) return out;
  for (const model::LoraTarget& t : input.inventory.lora_targets())
    if (std::find(input.lora->targets.begin(), input.lora->targets.end(), t.role) != input.lora->targets.end())
      out.push_back({t.role, t.layer, input.lora->options.rank});
  return out;
}

ShardingUse use_of(const CheckInput& input) {
  return input.purpose == Purpose::train ? ShardingUse::training : ShardingUse::sampling;
}

mesh::Placement place_with(const CheckInput& input, const mesh::ShardingRules& rules) {
  return place(input.inventory, input.mesh, rules, adapter_shapes(input), use_of(input));
}

std::shared_ptr<const mesh::Placement> placement_of(const CheckInput& input) {
  if (input.derived && input.derived->placement) return input.derived->placement;
  auto placement = std::make_shared<const mesh::Placement>(place_with(input, input.rules));
  if (input.derived) input.derived->placement = placement;
  return placement;
}

std::vector<mesh::SizeConstraint> needs_of(const CheckInput& input) {
  if (input.derived && input.derived->needs) return *input.derived->needs;
  std::vector<mesh::AdapterShape> adapters = adapter_shapes(input);
  const std::vector<model::Layer>& layers = input.config.layers;
  if (input.rules.overrides.empty())  // adapters of equal layers have equal constraints
    std::erase_if(adapters, [&](const auto& a) {
      const auto own = layers.begin() + a.layer;
      return std::find(layers.begin(), own, *own) != own;
    });
  auto needs = size_constraints(input.inventory, input.mesh, input.rules, adapters, use_of(input));
  if (input.derived) input.derived->needs = needs;
  return needs;
}

bool trains_lora(const CheckInput& input) {
  return input.purpose == Purpose::train && input.lora.has_value();
}

bool key_equals_value(const model::Layer& layer) {
  return layer.has_k && !layer.has_v;
}

bool has_key_equals_value(const model::Config& config) {
  return std::any_of(config.layers.begin(), config.layers.end(), key_equals_value);
}

}  // namespace mw::lint
