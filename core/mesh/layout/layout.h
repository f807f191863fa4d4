// SPDX-License-Identifier: Apache-2.0
// How the axes of a mesh lie on the physical grid of a target. Plain values; any thread.
#pragma once
#include "core/hardware/target.h"
#include "core/mesh/layout/mesh.h"

namespace mw::mesh {

// What a dimension of the grid is made of.
enum class Medium {
  none,    // of an axis of size 1: nothing moves
  chip,    // devices of one chip
  link,    // TPU links between neighbours
  node,    // GPUs of a node over their switch or PCIe; virtual devices of one CPU
  network  // between nodes
};
struct GridDimension {
  int size = 1;
  bool wrap = false;  // the last is a neighbour of the first
  Medium medium = Medium::link;
};
// The target's chips per dimension, then the devices of a chip where a chip has several. On a CPU the devices are
// virtual: as many as the mesh asks for.
std::vector<GridDimension> grid(const Mesh& mesh, const hardware::Target& target);

// A part of a physical dimension that a mesh axis lies on: `size` positions, `stride` chips apart.
struct GridPart {
  int dimension = 0, size = 1, stride = 1;
  bool operator==(const GridPart&) const = default;
};
// How a mesh axis lies on the grid, and what a ring or line along it can use of the links. A device sends
// rails * link_bandwidth / sharing bytes per second while all groups of this axis communicate at once.
struct AxisPlacement {
  std::string axis;
  int size = 1;
  std::vector<GridPart> parts{};  // more than one: a snake through several dimensions
  Medium medium = Medium::none;   // the slowest it crosses
  bool ring = false;              // neighbours close to a ring over physical links (or all meet in a switch)
  int rails = 1;    // links one way that a device sends on at once: 1 line, 2 ring, 2n torus of n dimensions
  int sharing = 1;  // groups that use the same link at once
  int hops = 0;     // link hops that the longest chain of a collective takes; switches: 1
};
struct RequestedPlacement {  // the axis may lie on these dimensions of the grid only
  std::string axis;
  std::vector<int> dimensions;
  bool operator==(const RequestedPlacement&) const = default;
};
struct Layout {
  std::vector<GridDimension> grid;
  std::vector<AxisPlacement> axes;  // in mesh order
  // Index in the grid (row-major) of the device of each mesh coordinate (row-major over the axes).
  std::vector<int> device_of;
};
// Of all ways to lay the axes on the grid where asked, the one whose rings and lines are fastest in sum; inner axes on
// inner dimensions where that is equal. Within a dimension the inner axis lies on adjacent chips. Throws the first of
// check(), or Error MESH-PLACE for an asked place that is not possible, naming the nearest legal values.
Layout lay_out(const Mesh& mesh, const hardware::Target& target, const std::vector<RequestedPlacement>& asked = {});

}  // namespace mw::mesh
