// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/network_split.h"

#include <algorithm>

namespace mw::mesh {
namespace {

bool crosses_network(const std::vector<GridDimension>& dims, int dimension) {
  return dims[static_cast<size_t>(dimension)].medium == Medium::network;
}

std::vector<int> dimensions_within(const std::vector<GridDimension>& dims) {
  std::vector<int> out;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d)
    if (!crosses_network(dims, d) && dims[static_cast<size_t>(d)].size > 1) out.push_back(d);
  return out;
}

// Keeps the axes of `inside`, one bit each, within a slice or node.
std::vector<RequestedPlacement> kept_within(const Mesh& mesh, unsigned inside, const std::vector<int>& within) {
  std::vector<RequestedPlacement> out;
  for (size_t a = 0; a < mesh.axes.size(); ++a)
    if (inside >> a & 1U) out.push_back({mesh.axes[a].name, within});
  return out;
}

// The axes that may be kept within, one bit each.
unsigned axes_to_keep(const Mesh& mesh) {
  unsigned out = 0;
  for (size_t a = 0; a < std::min<size_t>(mesh.axes.size(), 8); ++a)
    if (mesh.axes[a].size > 1) out |= 1U << a;
  return out;
}

}  // namespace

std::string to_text(const RequestedPlacement& place) {
  std::string text = place.axis + " =";
  for (size_t i = 0; i < place.dimensions.size(); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(place.dimensions[i]);
  return text;
}

bool has_network(const hardware::Target& target) {
  const std::vector<GridDimension> dims = grid({}, target);
  return std::any_of(dims.begin(), dims.end(),
                     [](const GridDimension& d) { return d.medium == Medium::network && d.size > 1; });
}

std::vector<MeshAxis> network_split(const Layout& layout) {
  std::vector<MeshAxis> out;
  for (const AxisPlacement& place : layout.axes) {
    int over = 1;
    for (const GridPart& part : place.parts)
      if (crosses_network(layout.grid, part.dimension)) over *= part.size;
    if (over > 1) out.push_back({place.axis, over});
  }
  return out;
}

std::vector<std::vector<RequestedPlacement>> network_placements(const Mesh& mesh, const hardware::Target& target,
                                                                const std::vector<RequestedPlacement>& own) {
  std::vector<std::vector<RequestedPlacement>> out{own};
  if (!has_network(target)) return out;
  std::vector<std::vector<MeshAxis>> splits;
  const auto is_new = [&](const std::vector<RequestedPlacement>& places) {
    try {
      std::vector<MeshAxis> split = network_split(lay_out(mesh, target, places));
      if (std::find(splits.begin(), splits.end(), split) != splits.end()) return false;
      splits.push_back(std::move(split));
      return true;
    } catch (const Error&) {
      return false;  // an axis does not fit where it should stay
    }
  };
  if (!is_new(own)) return out;
  if (!own.empty() && is_new({})) out.emplace_back();
  const std::vector<int> within = dimensions_within(grid(mesh, target));
  if (within.empty()) return out;  // each device is a slice or node
  const unsigned all = axes_to_keep(mesh);
  for (unsigned inside = 1; inside < all; ++inside) {
    if ((inside & all) != inside) continue;
    std::vector<RequestedPlacement> places = kept_within(mesh, inside, within);
    if (is_new(places)) out.push_back(std::move(places));
  }
  return out;
}

}  // namespace mw::mesh
