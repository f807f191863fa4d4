// SPDX-License-Identifier: Apache-2.0
#include "core/designer/actions.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/designer/canvas.h"

namespace mw::designer {

using mesh::Mesh;
using mesh::MeshAxis;
using mesh::Placement;
using mesh::RequestedPlacement;

namespace {

using Kind = Action::Kind;

bool is_virtual(const DesignContext& context) {
  return context.target->chip.vendor == hardware::Vendor::cpu;
}

int devices_of(const DesignContext& context, const Mesh& mesh) {
  std::int64_t n = 1;
  for (const mesh::GridDimension& d : grid(mesh, *context.target)) n *= d.size;
  return static_cast<int>(n);
}

MeshAxis* axis_of(Mesh& mesh, const std::string& axis) {
  const auto at = std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const MeshAxis& a) { return a.name == axis; });
  return at == mesh.axes.end() ? nullptr : &*at;
}

Problem no_axis(const Mesh& mesh, const std::string& axis) {
  return {.id = "MESH-AXIS",
          .message = "the mesh does not define this axis",
          .place = "mesh." + axis,
          .found = axis,
          .expected = to_text(mesh)};
}

// --- Sizes ---

// The mesh with `axis` at `size`. One other axis (outermost first) takes up the remaining devices; if none can, the
// first other axis takes all of them. The other axes stay unchanged if the size does not divide the target.
Mesh resized(const Mesh& mesh, const std::string& axis, int size, int devices) {
  Mesh out = mesh;
  axis_of(out, axis)->size = size;
  if (devices == 0 || size < 1 || devices % size != 0 || out.devices() == devices) return out;
  const int rest = devices / size, others = std::max(1, out.devices() / size);
  MeshAxis* first = nullptr;
  for (MeshAxis& a : out.axes) {
    if (a.name == axis) continue;
    if (!first) first = &a;
    const std::int64_t wanted = static_cast<std::int64_t>(std::max(1, a.size)) * rest;
    if (wanted % others != 0) continue;
    a.size = static_cast<int>(wanted / others);
    return out;
  }
  if (!first) return out;
  for (MeshAxis& a : out.axes)
    if (a.name != axis) a.size = &a == first ? rest : 1;
  return out;
}

std::vector<int> possible_sizes(const DesignContext& context, const Mesh& mesh, const Placement& current,
                                const std::string& axis) {
  constexpr int kMostVirtual = 64;
  const int devices = is_virtual(context) ? 0 : devices_of(context, mesh);
  std::map<std::string, std::set<int>> legal;
  for (const MeshAxis& a : mesh.axes) {
    const std::vector<int> sizes = legal_sizes(current, mesh, a.name, devices > 0 ? devices : kMostVirtual);
    legal[a.name] = {sizes.begin(), sizes.end()};
  }
  std::vector<int> out;
  for (const int n : legal[axis]) {
    if (devices > 0 && devices % n != 0) continue;
    const Mesh then = resized(mesh, axis, n, devices);
    if (devices > 0 && then.devices() != devices) continue;
    if (std::all_of(then.axes.begin(), then.axes.end(),
                    [&](const MeshAxis& a) { return legal[a.name].contains(a.size); }))
      out.push_back(n);
  }
  return out;
}

void resize(const DesignContext& context, const MeshDesign& now, const Action& action, ActionResult& out) {
  const int devices = is_virtual(context) ? 0 : devices_of(context, now.mesh);
  out.choice.mesh = resized(now.mesh, action.axis, action.value, devices);
  for (size_t i = 0; i < now.mesh.axes.size(); ++i) {
    const MeshAxis &before = now.mesh.axes[i], &after = out.choice.mesh.axes[i];
    if (before.size == after.size) continue;
    out.text += (out.text.empty() ? "" : ", ") + after.name + " " + std::to_string(before.size) + " to " +
                std::to_string(after.size);
  }
  // Requested placements may not fit the new size: drop them then.
  if (out.choice.mesh == now.mesh || now.places.empty()) return;
  try {
    lay_out(out.choice.mesh, *context.target, out.choice.places);
  } catch (const Error& error) {
    if (error.problem().id == "MESH-PLACE") out.choice.places.clear();
  }
}

// --- Places ---

void lay(const DesignContext& context, const MeshDesign& now, const Action& action, ActionResult& out) {
  auto& places = out.choice.places;
  const auto at =
      std::find_if(places.begin(), places.end(), [&](const RequestedPlacement& p) { return p.axis == action.axis; });
  const std::vector<int> before = at == places.end() ? std::vector<int>{} : at->dimensions;
  if (at != places.end()) places.erase(at);
  places.push_back({action.axis, {action.value}});
  out.text = action.axis + " on dimension " + std::to_string(action.value);
  try {
    lay_out(now.mesh, *context.target, places);
    return;
  } catch (const Error&) {
    // The dimension alone is too small: try it together with the dimensions requested before.
  }
  if (before.empty() || std::find(before.begin(), before.end(), action.value) != before.end()) return;
  std::vector<RequestedPlacement> both = places;
  both.back().dimensions = before;
  both.back().dimensions.push_back(action.value);
  try {
    lay_out(now.mesh, *context.target, both);
    places = std::move(both);
  } catch (const Error&) {
    // add_errors() reports the error for the single dimension
  }
}

// --- Specs ---

// The pattern that matches a tensor in all layers: "^layers\.\d+\.q_proj$".
std::string all_layers_pattern(const std::string& tensor) {
  std::string pattern = "^";
  size_t from = 0;
  constexpr std::string_view kLayers = "layers.";
  if (tensor.starts_with(kLayers)) {
    pattern += "layers\\.\\d+\\.";
    from = tensor.find('.', kLayers.size()) + 1;
  }
  for (size_t i = from; i < tensor.size(); ++i) {
    if (tensor[i] == '.') pattern += '\\';
    pattern += tensor[i];
  }
  return pattern + "$";
}

void set_rule(mesh::ShardingRules& rules, mesh::ShardingRule rule) {
  std::erase_if(rules.overrides, [&](const mesh::ShardingRule& r) { return r.pattern == rule.pattern; });
  rules.overrides.insert(rules.overrides.begin(), std::move(rule));
}

void shard(const Placement& current, const Action& action, ActionResult& out) {
  const mesh::PlacedTensor* tensor = find_tensor(current, action.tensor);
  const bool on = action.kind == Kind::shard;
  if (!tensor || (on && (action.value < 0 || action.value >= static_cast<int>(tensor->dims.size())))) {
    out.reasons.push_back(
        {.id = "SPEC-RANK",
         .message = tensor ? "the tensor does not have this dimension" : "the model does not have this tensor",
         .place = "tensor " + action.tensor,
         .found = std::to_string(action.value)});
    return;
  }
  mesh::PartitionSpec spec = tensor->spec;
  for (auto& axes : spec.dims) std::erase(axes, action.axis);
  if (on) spec.dims[static_cast<size_t>(action.value)].push_back(action.axis);
  out.text = action.tensor + " " + to_text(spec);
  if (spec == tensor->spec) return;
  set_rule(out.choice.rules, {all_layers_pattern(action.tensor), std::move(spec)});
}

// --- Axes ---

void add_axis(const Action& action, ActionResult& out) {
  out.choice.mesh.axes.insert(out.choice.mesh.axes.begin(), {action.axis, 1});
  out.text = "axis " + action.axis;
}

void remove_axis(const MeshDesign& now, const Action& action, ActionResult& out) {
  out.text = "no axis " + action.axis;
  if (now.mesh.size(action.axis) > 1)
    out.reasons.push_back({.id = "MESH-AXIS",
                           .message = "only an axis of one device can be removed",
                           .place = "mesh." + action.axis,
                           .found = std::to_string(now.mesh.size(action.axis)),
                           .expected = "1",
                           .fix = "set mesh." + action.axis + " = 1 first"});
  std::erase_if(out.choice.mesh.axes, [&](const MeshAxis& a) { return a.name == action.axis; });
  std::erase_if(out.choice.places, [&](const RequestedPlacement& p) { return p.axis == action.axis; });
}

// --- Judging ---

void add_errors(const DesignContext& context, const MeshDesign& now, const Placement& current, ActionResult& out) {
  using Key = std::pair<std::string, std::string>;
  std::set<Key> known;
  const auto collect = [&](const std::vector<Problem>& problems) {
    for (const Problem& p : problems) known.insert({p.id, p.place});
  };
  const auto judge = [&](const std::vector<Problem>& problems) {
    for (const Problem& p : problems)
      if (p.severity == Severity::error && !known.contains({p.id, p.place})) out.reasons.push_back(p);
  };
  const auto of_mesh = [&](const MeshDesign& c) {
    return check_mesh(c.mesh, is_virtual(context) ? 0 : devices_of(context, c.mesh));
  };
  collect(current.problems);
  if (!(out.choice.mesh == now.mesh && out.choice.rules == now.rules)) {
    out.placement = std::make_shared<Placement>(
        place(*context.inventory, out.choice.mesh, out.choice.rules, context.adapters, context.use));
    judge(out.placement->problems);
  }
  const std::vector<Problem> mesh_problems = of_mesh(out.choice);
  collect(of_mesh(now));
  judge(mesh_problems);
  if (!mesh_problems.empty() || out.choice.places.empty()) return;
  try {
    lay_out(out.choice.mesh, *context.target, out.choice.places);
  } catch (const Error& error) {
    out.reasons.push_back(error.problem());
  }
}

}  // namespace

ActionResult try_action(const DesignContext& subject, const MeshDesign& now, const Placement& current,
                        const Action& action) {
  ActionResult out{.choice = now};
  if (action.kind != Kind::add && !now.mesh.has(action.axis)) {
    out.reasons.push_back(no_axis(now.mesh, action.axis));
    return out;
  }
  switch (action.kind) {
    case Kind::resize:
      resize(subject, now, action, out);
      break;
    case Kind::lay:
      lay(subject, now, action, out);
      break;
    case Kind::release:
      std::erase_if(out.choice.places, [&](const RequestedPlacement& p) { return p.axis == action.axis; });
      out.text = action.axis + " placed on the fastest links";
      break;
    case Kind::shard:
    case Kind::unshard:
      shard(current, action, out);
      break;
    case Kind::add:
      add_axis(action, out);
      break;
    case Kind::remove:
      remove_axis(now, action, out);
      break;
  }
  if (out.reasons.empty()) add_errors(subject, now, current, out);
  out.accepted = out.reasons.empty();
  if (!out.accepted && action.kind == Kind::resize) {
    out.other_sizes = possible_sizes(subject, now.mesh, current, action.axis);
    std::erase(out.other_sizes, now.mesh.size(action.axis));
  }
  return out;
}

std::vector<int> size_steps(const DesignContext& subject, const Mesh& mesh, std::string_view axis) {
  const int devices = is_virtual(subject) ? 64 : devices_of(subject, mesh);
  std::set<int> steps{mesh.size(axis), 2 * devices};
  for (int n = 1; n <= devices; ++n)
    if (devices % n == 0) steps.insert(n);
  return {steps.begin(), steps.end()};
}

std::string refusal_text(const ActionResult& outcome) {
  std::string text;
  for (const Problem& p : outcome.reasons) {
    text += (text.empty() ? "" : "\n") + p.message;
    if (p.id == "MESH-PLACE" || p.id == "MESH-AXIS")
      text += " (" + p.found + (p.expected.empty() ? "" : "; " + p.expected) + ")";
  }
  return text;
}

}  // namespace mw::designer
