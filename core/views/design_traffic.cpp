// SPDX-License-Identifier: Apache-2.0
// Connects a design with the canvas: traffic of a tensor, and edits of the document for changes on the canvas.
#include <map>

#include "core/designer/canvas.h"
#include "core/mesh/layout/layout.h"
#include "core/views/design_view.h"

namespace mw::views {
namespace {

// Returns whether the traffic belongs to activations of the tensor's block.
std::string block_of(const mesh::PlacedTensor& t) {
  using model::Role;
  if (t.layer < 0) return t.base == Role::embed || t.base == Role::lm_head ? "logits" : "";
  const std::string layer = "layers." + std::to_string(t.layer);
  switch (t.base) {
    case Role::q_proj:
    case Role::k_proj:
    case Role::v_proj:
    case Role::o_proj:
      return layer + ".attention";
    case Role::gate_proj:
    case Role::up_proj:
    case Role::down_proj:
      return layer + ".mlp";
    default:
      return {};
  }
}

}  // namespace

std::vector<Traffic> traffic(const Design& design, const std::string& tensor) {
  const mesh::PlacedTensor* t = mesh::find_tensor(design.placement, tensor);
  if (!t) return {};
  const std::string block = block_of(*t);
  std::vector<Traffic> out;
  std::map<std::string, Bytes> sums;  // by axis: bytes that a device sends per step
  for (std::size_t i = 0; i < design.collectives.size(); ++i) {
    const mesh::Collective& c = design.collectives[i];
    if (c.tensor != tensor && (block.empty() || c.tensor != block)) continue;
    const std::string size = to_text(c.full);
    sums[c.axis] += c.moved * c.calls;
    out.push_back({c.axis,
                   to_string(c.kind) + " over " + c.axis + ": " + std::to_string(c.calls) + " x " + size + ", " +
                       to_text(Seconds(design.seconds[i].value)) + " each, " + to_string(c.phase) + " (" +
                       to_string(c.cause) + ")",
                   {}});
  }
  for (Traffic& line : out)  // only the first entry of an axis has a label
    if (const auto sum = sums.extract(line.axis)) line.label = to_text(sum.mapped()) + " per step";
  return out;
}

designer::MeshDesign choice_of(const Design& design) {
  const plan::Request& r = design.request();
  return {.mesh = r.mesh, .places = r.places, .rules = r.rules};
}

experiment::Experiment with_choice(experiment::Experiment e, const designer::MeshDesign& before,
                                   const designer::MeshDesign& after) {
  for (const mesh::MeshAxis& axis : before.mesh.axes)
    if (!after.mesh.has(axis.name)) e.erase("mesh." + axis.name);
  if (!(before.mesh == after.mesh))
    for (const mesh::MeshAxis& axis : after.mesh.axes) e.set_value("mesh." + axis.name, axis.size);
  if (before.places != after.places) {
    Json places = Json::array();
    for (const mesh::RequestedPlacement& p : after.places) places.push_back(mesh::to_text(p));
    places.empty() ? e.erase("sharding.places") : e.set_value("sharding.places", places);
  }
  if (before.rules.overrides != after.rules.overrides) {
    Json rules = Json::array();
    for (const mesh::ShardingRule& r : after.rules.overrides)
      rules.push_back(r.pattern + " = " + mesh::to_text(r.spec));
    rules.empty() ? e.erase("sharding.overrides") : e.set_value("sharding.overrides", rules);
  }
  return e;
}

}  // namespace mw::views
