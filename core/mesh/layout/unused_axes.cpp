// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/unused_axes.h"

#include <algorithm>
#include <array>

#include "core/base/nearest_names.h"
#include "core/base/text.h"

namespace mw::mesh {
namespace {

constexpr std::array<std::string_view, 3> kKnown{"fsdp", "tp", "data"};

bool contains(const std::vector<std::string>& axes, const std::string& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<std::string> preset_axes(Preset preset, ShardingUse use) {
  switch (preset) {
    case Preset::fsdp:
      return {"fsdp", "data"};
    case Preset::megatron:
      if (use == ShardingUse::sampling) return {"data", "tp"};
      break;
    case Preset::tunix:
    case Preset::replicated:
      break;
  }
  return {"fsdp", "tp", "data"};
}

Problem unused(const MeshAxis& axis, const std::vector<std::string>& splitting) {
  const std::string size = std::to_string(axis.size), meant = intended_axis(axis.name);
  Problem p{.id = "MESH-2",
            .severity = meant.empty() ? Severity::warning : Severity::error,
            .message = "no tensor is split over the mesh axis '" + axis.name + "': its " + size +
                       " devices repeat each other's work",
            .place = "mesh." + axis.name,
            .found = axis.name,
            .expected = joined(splitting) + ", or an axis that a rule of sharding.overrides names"};
  p.fix = meant.empty()
              ? "remove mesh." + axis.name + ", or name the axis in sharding.overrides"
              : "did you mean " + meant + "? Set mesh." + meant + "=" + size + " and remove mesh." + axis.name;
  return p;
}

}  // namespace

std::string intended_axis(std::string_view name) {
  for (const std::string_view known : kKnown)
    if (name != known && is_likely_typo(name, known)) return std::string(known);
  return {};
}

std::vector<std::string> splitting_axes(const ShardingRules& rules, ShardingUse use) {
  std::vector<std::string> all = preset_axes(rules.preset, use);
  if (rules.experts == ExpertParallel::on) all.emplace_back(kExpertAxis);
  for (const ShardingRule& rule : rules.overrides)
    for (const std::vector<std::string>& axes : rule.spec.dims)
      for (const std::string& axis : axes)
        if (!contains(all, axis)) all.push_back(axis);
  return all;
}

std::vector<Problem> find_unused_axes(const Mesh& mesh, const ShardingRules& rules, ShardingUse use) {
  const std::vector<std::string> splitting = splitting_axes(rules, use);
  std::vector<Problem> problems;
  for (const MeshAxis& axis : mesh.axes)
    if (axis.size > 1 && !contains(splitting, axis.name)) problems.push_back(unused(axis, splitting));
  return problems;
}

}  // namespace mw::mesh
