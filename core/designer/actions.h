// SPDX-License-Identifier: Apache-2.0
// What can be done to a design on the canvas: each action gives the design it leads to, or why not and what would be
// possible. Pure functions; any thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mesh/layout/sharding.h"

namespace mw::designer {

struct Choice {  // what the document says of the mesh
  mesh::Mesh mesh;
  std::vector<mesh::AskedPlace> places{};
  mesh::Rules rules{};
  bool operator==(const Choice&) const = default;
};

struct Subject {  // what it is about; pointers outlive the calls
  const model::TensorInventory* inventory = nullptr;
  const hardware::Target* target = nullptr;
  std::vector<mesh::AdapterShape> adapters{};
  mesh::Use use = mesh::Use::training;
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

struct Outcome {
  bool accepted = false;
  Choice choice{};                  // where it leads, possible or not
  std::string text{};               // "tp 4 to 8", "tp on columns": for undo and the status line
  std::vector<Problem> reasons{};   // why not: errors that are not there already
  std::vector<int> legal{};         // resize: sizes that are possible, ascending
  std::optional<Choice> nearest{};  // resize: the design with the nearest of them
  std::optional<int> nearest_size{};
  std::shared_ptr<const mesh::Placement> placement{};  // of `choice`; null where it is that of now
};
// `current`: the placement of `now`.
Outcome try_action(const Subject& subject, const Choice& now, const mesh::Placement& current, const Action& action);

// Sizes to step through when an axis is dragged or scrolled: all that divide the target, and twice as much, so that
// one can read why not.
std::vector<int> size_steps(const Subject& subject, const mesh::Mesh& mesh, std::string_view axis);

// "^layers\.\d+\.q_proj$": the pattern of a tensor in all layers.
std::string pattern_of(const std::string& tensor);
// Reason and what would be possible, for the cursor: one line each.
std::string refusal_text(const Outcome& outcome);

}  // namespace mw::designer
