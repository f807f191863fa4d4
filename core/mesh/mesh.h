// SPDX-License-Identifier: Apache-2.0
// A logical mesh of devices and its place on the physical grid. Plain values; any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/hardware/target.h"

namespace mw::mesh {

struct MeshAxis {
  std::string name;  // "fsdp", "tp", "data" or any other
  int size = 1;
  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;  // outermost first, as in jax.make_mesh
  int devices() const;
  int size(std::string_view axis) const;  // 1 where there is no such axis
  bool operator==(const Mesh&) const = default;
};

// A part of a physical dimension that a mesh axis lies on: `size` consecutive chips (or blocks of chips).
struct GridPart {
  int dimension = 0, size = 1;
  bool operator==(const GridPart&) const = default;
};
// How a mesh axis lies on the grid; devices of one chip count as an innermost dimension.
struct AxisPlace {
  std::string axis;
  std::vector<GridPart> parts;  // more than one: a snake through several dimensions
  bool ring = false;            // its neighbours close to a ring over physical links
};
// Places given axes as asked (axis -> grid dimensions), the others by the default order: the innermost axis first on the
// dimensions that close to rings, then greedily. Throws Error where the product is not the device count (MESH-SIZE) or
// an asked place is not possible, naming the nearest legal values.
struct Layout {
  std::vector<AxisPlace> axes;
  // chip index in the grid (row-major over shape, then device in chip) of each mesh coordinate, row-major over axes.
  std::vector<int> device_of;
};
struct AskedPlace {
  std::string axis;
  std::vector<int> dimensions;
};
Layout lay_out(const Mesh& mesh, const hardware::Target& target, const std::vector<AskedPlace>& asked = {});

}  // namespace mw::mesh
