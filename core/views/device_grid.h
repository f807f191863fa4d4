// SPDX-License-Identifier: Apache-2.0
// Positions of virtual devices on a plane, for drawing a run, derived from their mesh coordinates. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/mesh/layout/mesh.h"

namespace mw::views {

struct GridDevice {
  int device = 0;  // row-major index in the mesh
  int column = 0, row = 0;
  std::string name;  // "fsdp 1, tp 0"; omits axes of size 1
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
// Places the last axis of more than one device horizontally and the one before it vertically; earlier axes alternate
// and repeat the blocks of the later ones.
DeviceGrid device_grid(const mesh::Mesh& mesh);

}  // namespace mw::views
