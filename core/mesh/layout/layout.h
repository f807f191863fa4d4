// SPDX-License-Identifier: Apache-2.0
// How the axes of a mesh lie on the physical grid of a target. Plain values; any thread.
#pragma once
#include "core/hardware/target.h"
#include "core/mesh/layout/mesh.h"

namespace mw::mesh {

// The hardware that connects the devices along a dimension of the grid.
enum class Medium {
  none,    // an axis of size 1: no communication
  chip,    // the devices of one chip
  link,    // TPU links between neighbours
  node,    // GPUs of a node over their switch or PCIe; virtual devices of one CPU
  network  // the network between nodes, or between TPU slices
};
struct GridDimension {
  int size = 1;
  bool wrap = false;  // the last position is a neighbour of the first
  Medium medium = Medium::link;
};
// The target's chips per dimension, then the devices of a chip if a chip has several. On a CPU the devices are virtual:
// one dimension with as many devices as the mesh.
std::vector<GridDimension> grid(const Mesh& mesh, const hardware::Target& target);

// A part of a physical dimension that a mesh axis lies on: `size` positions, `stride` chips apart.
struct GridPart {
  int dimension = 0, size = 1, stride = 1;
  bool operator==(const GridPart&) const = default;
};
// Where a mesh axis lies on the grid and which share of the links its collectives can use: a device sends
// rails * link_bandwidth / sharing bytes per second while all groups of this axis communicate at once. Of an axis over
// several TPU slices, rails, sharing and hops describe its part within a slice.
struct AxisPlacement {
  std::string axis;
  int size = 1;
  std::vector<GridPart> parts{};  // several: the axis winds through these dimensions
  Medium medium = Medium::none;   // the slowest medium that the axis crosses
  bool ring = false;              // the neighbours form a ring over physical links, or share a switch
  int rails = 1;    // links that a device sends on at once: 1 in a line, 2 in a ring, 2n in a torus of n dimensions
  int sharing = 1;  // groups that use the same link at once
  int hops = 0;     // hops of the longest path of a collective; 1 through a switch
};
struct RequestedPlacement {  // restricts an axis to these dimensions of the grid
  std::string axis;
  std::vector<int> dimensions;
  bool operator==(const RequestedPlacement&) const = default;
};
struct Layout {
  std::vector<GridDimension> grid;
  std::vector<AxisPlacement> axes;  // in mesh order
  // The row-major index in the grid of each mesh position (row-major over the axes).
  std::vector<int> device_of;
};
// Tries every assignment of axes to grid dimensions that satisfies `asked` and returns the one with the lowest total
// communication cost; ties go to inner axes on inner dimensions. Within a dimension the inner axis lies on adjacent
// chips. Throws the first problem of check_mesh(), or Error MESH-PLACE if a requested placement is impossible; its
// message names the nearest legal values.
Layout lay_out(const Mesh& mesh, const hardware::Target& target, const std::vector<RequestedPlacement>& asked = {});

std::string to_text(const RequestedPlacement& place);  // "tp = 0, 1", as in sharding.places

// --- A mesh on several TPU slices or GPU nodes, as dcn_mesh_shape of
// jax.experimental.mesh_utils.create_hybrid_device_mesh ---

// Whether the target has several slices or nodes.
bool has_network(const hardware::Target& target);

// The axes that cross the network, each with its number of slices or nodes; their product is that of the target.
std::vector<MeshAxis> network_split(const Layout& layout);

// The placements of a mesh on a target with a network, one for each split that placements can express: `own` first,
// then the one that lay_out() chooses freely, then those that keep some of the axes within a slice or node. `own` alone
// on other targets, and for a mesh that does not match the target.
std::vector<std::vector<RequestedPlacement>> network_placements(const Mesh& mesh, const hardware::Target& target,
                                                                const std::vector<RequestedPlacement>& own);

}  // namespace mw::mesh
