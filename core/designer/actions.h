// SPDX-License-Identifier: Apache-2.0
// What can be done to a design on the canvas: each action gives the design it leads to, or why not and what would be
// possible. Pure functions; any thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"

namespace mw::designer {

struct MeshDesign {  // what the document says of the mesh
  mesh::Mesh mesh;
  std::vector<mesh::RequestedPlacement> places{};
  mesh::ShardingRules rules{};
  bool operator==(const MeshDesign&) const = default;
};

struct DesignContext {  // what it is about; pointers outlive the calls
  const model::TensorInventory* inventory = nullptr;
  const hardware::Target* target = nullptr;
  std::vector<mesh::AdapterShape> adapters{};
  mesh::ShardingUse use = mesh::ShardingUse::training;
};

struct Action {
  enum class Kind {
    resize,   // the axis to `value` devices; another axis takes up the rest, so that the target stays covered
    lay,      // the axis on grid dimension `value`, besides those it lies on where it needs more
    release,  // its place is free again
    shard,    // dimension `value` of `tensor` (in all layers) split by the axis, and no other of it
    unshard,  // no dimension of `tensor` split by it
    add,      // a new axis of size 1 with this name
    remove    // the axis, if it has one device
  };
  Kind kind = Kind::resize;
  std::string axis;
  int value = 0;
  std::string tensor{};  // logical name, of an adapter too
  bool operator==(const Action&) const = default;
};

struct ActionResult {
  bool accepted = false;
  MeshDesign choice{};                  // where it leads, possible or not
  std::string text{};                   // "tp 4 to 8", "tp on columns": for undo and the status line
  std::vector<Problem> reasons{};       // why not: errors that are not there already
  std::vector<int> legal{};             // resize: sizes that are possible, ascending
  std::optional<MeshDesign> nearest{};  // resize: the design with the nearest of them
  std::optional<int> nearest_size{};
  std::shared_ptr<const mesh::Placement> placement{};  // of `choice`; null where it is that of now
};
// `current`: the placement of `now`.
ActionResult try_action(const DesignContext& subject, const MeshDesign& now, const mesh::Placement& current,
                        const Action& action);

// Sizes to step through when an axis is dragged or scrolled: all that divide the target, and twice as much, so that
// one can read why not.
std::vector<int> size_steps(const DesignContext& subject, const mesh::Mesh& mesh, std::string_view axis);

// "^layers\.\d+\.q_proj$": the pattern of a tensor in all layers.
std::string all_layers_pattern(const std::string& tensor);
// Reason and what would be possible, for the cursor: one line each.
std::string refusal_text(const ActionResult& outcome);

}  // namespace mw::designer
