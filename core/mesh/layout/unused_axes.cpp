// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/unused_axes.h"

#include <algorithm>
#include <array>

#include "core/base/nearest_names.h"

namespace mw::mesh {
namespace {

constexpr std::array<std::string_view, 3> kKnown{"fsdp", "tp", "data"};

bool in_a_rule(const ShardingRules& rules, const std::string& axis) {
  return std::any_of(rules.overrides.begin(), rules.overrides.end(), [&](const ShardingRule& rule) {
    return std::any_of(rule.spec.dims.begin(), rule.spec.dims.end(), [&](const std::vector<std::string>& axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    });
  });
}

Problem unused(const MeshAxis& axis) {
  const std::string size = std::to_string(axis.size), meant = intended_axis(axis.name);
  Problem p{.id = "MESH-2",
            .severity = meant.empty() ? Severity::warning : Severity::error,
            .message = "no tensor is split over the mesh axis '" + axis.name + "': its " + size +
                       " devices repeat each other's work",
            .place = "mesh." + axis.name,
            .found = axis.name,
            .expected = "fsdp, tp, data, or an axis that a rule of sharding.overrides names"};
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

std::vector<Problem> find_unused_axes(const Mesh& mesh, const ShardingRules& rules) {
  std::vector<Problem> problems;
  for (const MeshAxis& axis : mesh.axes) {
    const bool known = std::find(kKnown.begin(), kKnown.end(), axis.name) != kKnown.end();
    if (axis.size > 1 && !known && !in_a_rule(rules, axis.name)) problems.push_back(unused(axis));
  }
  return problems;
}

}  // namespace mw::mesh
