// SPDX-License-Identifier: Apache-2.0
#include "core/views/device_grid.h"

namespace mw::views {
namespace {

// Distance on the plane between neighbours along an axis.
struct Stride {
  int column = 0, row = 0;
};

std::vector<Stride> strides(const mesh::Mesh& mesh, DeviceGrid& grid) {
  std::vector<Stride> out(mesh.axes.size());
  bool across = true;
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    const int size = mesh.axes[i].size;
    if (size < 2) continue;
    int& extent = across ? grid.columns : grid.rows;
    (across ? out[i].column : out[i].row) = extent;
    extent *= size;
    across = !across;
  }
  return out;
}

std::string coordinate_text(const mesh::Mesh& mesh, const std::vector<int>& at) {
  std::string out;
  for (size_t i = 0; i < at.size(); ++i)
    if (mesh.axes[i].size > 1) out += (out.empty() ? "" : ", ") + mesh.axes[i].name + " " + std::to_string(at[i]);
  return out;
}

}  // namespace

DeviceGrid device_grid(const mesh::Mesh& mesh) {
  DeviceGrid grid;
  const auto stride = strides(mesh, grid);
  std::vector<int> step(mesh.axes.size(), 1);  // in devices, along each axis
  for (size_t i = mesh.axes.size(); i-- > 1;) step[i - 1] = step[i] * mesh.axes[i].size;
  for (int d = 0; d < mesh.devices(); ++d) {
    const auto at = mesh::coordinate(mesh, d);
    GridDevice device{.device = d, .name = coordinate_text(mesh, at)};
    for (size_t i = 0; i < at.size(); ++i) {
      device.column += at[i] * stride[i].column;
      device.row += at[i] * stride[i].row;
      if (at[i] + 1 < mesh.axes[i].size) grid.edges.push_back({d, d + step[i], static_cast<int>(i)});
    }
    grid.devices.push_back(std::move(device));
  }
  return grid;
}

}  // namespace mw::views
