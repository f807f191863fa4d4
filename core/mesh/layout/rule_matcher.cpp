// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/rule_matcher.h"

#include <algorithm>

namespace mw::mesh {
namespace {

std::string with_slashes(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

}  // namespace

RuleMatcher::RuleMatcher(const ShardingRules& rules, const Mesh& mesh, std::vector<Problem>& problems)
    : rules_(rules), mesh_(mesh), problems_(problems), used_(rules.overrides.size(), false) {
  for (size_t i = 0; i < rules.overrides.size(); ++i) {
    patterns_.emplace_back();
    try {
      patterns_.back().emplace(rules.overrides[i].pattern);
    } catch (const Error& error) {
      report(i, error);
    }
  }
}

int RuleMatcher::find(const std::string& name, const std::string& path, model::Role role) {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    if (model::is_adapter(role) && rules_.overrides[i].pattern.find("lora_") == std::string::npos) continue;
    if (!matches(i, name, path)) continue;
    used_[i] = true;
    return static_cast<int>(i);
  }
  return -1;
}

PartitionSpec RuleMatcher::spec(int rule, const std::string& name, size_t rank, int tunix_slot) {
  const size_t i = static_cast<size_t>(rule);
  PartitionSpec spec = rules_.overrides[i].spec;
  if (spec.dims.size() == rank + 1 && tunix_slot >= 0 && spec.dims.front().empty())
    spec.dims.erase(spec.dims.begin());  // the axis of K and V
  if (spec.dims.size() > rank)
    report_once(i, "SPEC-RANK", "",
                {.message = "the spec is longer than the tensor " + name + " has dimensions",
                 .found = to_text(rules_.overrides[i].spec),
                 .expected = "at most " + std::to_string(rank) + (rank == 1 ? " entry" : " entries"),
                 .fix = "take entries out"});
  spec.dims.resize(rank);
  std::set<std::string> seen;
  for (auto& axes : spec.dims)
    std::erase_if(axes, [&](const std::string& axis) {
      if (!mesh_.has(axis)) {
        report_once(i, "SPEC-AXIS", axis,
                    {.message = "the spec uses an axis that the mesh does not define",
                     .found = axis,
                     .expected = mesh_.axes.empty() ? "- for every dimension" : "one of " + to_text(mesh_),
                     .fix = "add the axis to the mesh, or use another"});
        return true;
      }
      if (seen.insert(axis).second) return false;
      report_once(i, "SPEC-TWICE", axis,
                  {.message = "the spec uses an axis twice",
                   .found = to_text(rules_.overrides[i].spec),
                   .expected = axis + " on one dimension",
                   .fix = "take " + axis + " from all dimensions but one"});
      return true;
    });
  return spec;
}

void RuleMatcher::report_unused() {
  for (size_t i = 0; i < patterns_.size(); ++i)
    if (patterns_[i] && !used_[i])
      problems_.push_back({.id = "SPEC-UNUSED",
                           .severity = Severity::warning,
                           .message = "the sharding rule matches no tensor",
                           .place = place(i),
                           .found = shown(i),
                           .fix = "correct the pattern, or remove the rule"});
}

bool RuleMatcher::matches(size_t i, const std::string& name, const std::string& path) {
  if (!patterns_[i]) return false;
  try {
    return patterns_[i]->found_in(name) || patterns_[i]->found_in(path) || patterns_[i]->found_in(with_slashes(path));
  } catch (const Error& error) {
    report(i, error);
    patterns_[i].reset();
    return false;
  }
}

void RuleMatcher::report(size_t i, const Error& error) {
  Problem problem = error.problem();
  problem.id = "SPEC-PATTERN";
  problem.place = place(i) + (problem.place.empty() ? "" : ", " + problem.place);
  problems_.push_back(std::move(problem));
}

void RuleMatcher::report_once(size_t i, const char* id, const std::string& axis, Problem problem) {
  if (!reported_.insert({i, id, axis}).second) return;
  problem.id = id;
  problem.place = place(i);
  problems_.push_back(std::move(problem));
}

std::string RuleMatcher::place(size_t i) const {
  return "sharding rule " + std::to_string(i + 1) + ", " + shown(i);
}

std::string RuleMatcher::shown(size_t i) const {
  return rules_.overrides[i].pattern.substr(0, 80);
}

}  // namespace mw::mesh
