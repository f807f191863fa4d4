// SPDX-License-Identifier: Apache-2.0
// The virtual devices of a mesh on a plane, for a picture of a run: by their coordinates in the mesh, since on one
// machine there is no other topology. Plain values; any thread.
#pragma once
#include <string>
#include <vector>

#include "core/mesh/layout/mesh.h"

namespace mw::views {

struct GridDevice {
  int device = 0;  // row-major in the mesh
  int column = 0, row = 0;
  std::string name;  // "fsdp 1, tp 0": axes of one device left out
};
struct DeviceEdge {  // neighbours along an axis
  int a = 0, b = 0;
  int axis = 0;  // of the mesh
};
struct DeviceGrid {
  int columns = 1, rows = 1;
  std::vector<GridDevice> devices;  // by device
  std::vector<DeviceEdge> edges;
};
// The last axis of more than one device lies across, the one before it down, those before it across and down in turn,
// as blocks of what is inside them.
DeviceGrid device_grid(const mesh::Mesh& mesh);

}  // namespace mw::views
