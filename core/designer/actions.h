// SPDX-License-Identifier: Apache-2.0
// Actions on a mesh design. Each action returns the resulting design, or the reasons for refusing it and the legal
// alternatives. Pure functions; any thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"

namespace mw::designer {

struct MeshDesign {  // the mesh settings of an experiment
  mesh::Mesh mesh;
  std::vector<mesh::RequestedPlacement> places{};
  mesh::ShardingRules rules{};
  bool operator==(const MeshDesign&) const = default;
};

struct DesignContext {  // the model and target of a design; the pointers must outlive the calls
  const model::TensorInventory* inventory = nullptr;
  const hardware::Target* target = nullptr;
  std::vector<mesh::AdapterShape> adapters{};
  mesh::ShardingUse use = mesh::ShardingUse::training;
};

struct Action {
  enum class Kind {
    resize,   // set the axis to `value` devices; another axis takes up the rest, so that the mesh covers the target
    lay,      // place the axis on grid dimension `value`, in addition to its present ones if it does not fit alone
    release,  // remove the placement of the axis
    shard,    // split dimension `value` of `tensor` (in all layers) over the axis, and no other dimension
    unshard,  // split no dimension of `tensor` over the axis
    add,      // add an axis of size 1 with this name
    remove    // remove the axis if it has one device
  };
  Kind kind = Kind::resize;
  std::string axis;
  int value = 0;
  std::string tensor{};  // logical name of a weight or an adapter
  bool operator==(const Action&) const = default;
};

struct ActionResult {
  bool accepted = false;
  MeshDesign choice{};                                 // the resulting design, also if it is refused
  std::string text{};                                  // "tp 4 to 8", "tp on columns": for undo and the status line
  std::vector<Problem> reasons{};                      // errors that `now` does not have; empty if accepted
  std::vector<int> other_sizes{};                      // resize: legal sizes except the present one, ascending
  std::shared_ptr<const mesh::Placement> placement{};  // of `choice`; null if it equals the current one
};
// Applies an action to the design `now`, whose placement is `current`.
ActionResult try_action(const DesignContext& subject, const MeshDesign& now, const mesh::Placement& current,
                        const Action& action);

// Sizes to step through when the user drags or scrolls an axis: all that divide the target, and one size that is too
// large, to show the reason for refusing it.
std::vector<int> size_steps(const DesignContext& subject, const mesh::Mesh& mesh, std::string_view axis);

// The reasons for refusing, one line each.
std::string refusal_text(const ActionResult& outcome);

}  // namespace mw::designer
