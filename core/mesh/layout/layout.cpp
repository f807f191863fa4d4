// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

// Tries every assignment of mesh axes to grid dimensions; there are few.

namespace mw::mesh {
namespace {

using Factors = std::vector<int>;  // per dimension of the grid

// --- What an axis can use of the links ---

Medium slowest(const std::vector<GridPart>& parts, const std::vector<GridDimension>& dims) {
  Medium medium = Medium::none;
  for (const GridPart& p : parts) medium = std::max(medium, dims[static_cast<size_t>(p.dimension)].medium);
  return medium;
}

void link_facts(AxisPlacement& place, const std::vector<GridDimension>& dims) {
  int wide = 0, whole_rings = 0, stride = 1, ring_hops = 0, inside_parts = 0;
  int block = 1;
  for (const GridPart& p : place.parts) {
    const GridDimension& d = dims[static_cast<size_t>(p.dimension)];
    if (d.medium == Medium::network || d.medium == Medium::node) continue;
    block *= p.size;
    ++inside_parts;
    if (d.medium != Medium::link) continue;  // the devices of a chip pass on what its links bring
    ++wide;
    stride = std::max(stride, p.stride);
    const bool closes = d.wrap && p.size * p.stride == d.size;
    whole_rings += closes && d.size > 2;
    ring_hops += std::max(1, p.size / 2) * p.stride;
  }
  place.sharing = stride;
  for (size_t i = 0; i < dims.size(); ++i) {  // devices of one chip share its links, unless the axis runs through them
    const bool inside = std::any_of(place.parts.begin(), place.parts.end(),
                                    [&](const GridPart& p) { return p.dimension == static_cast<int>(i); });
    if (dims[i].medium == Medium::chip && !inside) place.sharing *= dims[i].size;
  }
  if (whole_rings == wide && wide > 0) {  // a torus: a ring in each dimension at once
    place.ring = true;
    place.rails = 2 * wide;
    place.hops = ring_hops;
    return;
  }
  place.ring =
      inside_parts > 1 && block % 2 == 0 && block > 2;  // a grid of even size has a closed walk over all its points
  place.rails = place.ring ? 2 : 1;
  place.hops = (place.ring ? block / 2 : block - 1) * stride;
}

bool uses_links(const AxisPlacement& place, const std::vector<GridDimension>& dims) {
  return std::any_of(place.parts.begin(), place.parts.end(),
                     [&](const GridPart& p) { return dims[static_cast<size_t>(p.dimension)].medium == Medium::link; });
}

AxisPlacement place_of(const MeshAxis& axis, std::vector<GridPart> parts, const std::vector<GridDimension>& dims) {
  AxisPlacement place{.axis = axis.name, .size = std::max(1, axis.size), .parts = std::move(parts)};
  place.medium = slowest(place.parts, dims);
  if (place.medium == Medium::none) return place;
  if (place.medium == Medium::link) {
    link_facts(place, dims);
    return place;
  }
  if (uses_links(place, dims)) link_facts(place, dims);  // within a slice
  place.ring = true;                                     // a switch, or one chip
  place.hops = std::max(1, place.hops);
  return place;
}

// --- The search ---

// The rank of each axis by how much it communicates, whatever its position in the mesh: copies once in a step, shards
// of the weights in every layer, tp for every product.
std::vector<size_t> traffic_ranks(const Mesh& mesh) {
  const auto key = [](const MeshAxis& a) {
    return std::pair(a.name == "data" ? 0 : a.name == "fsdp" ? 1 : a.name == "tp" ? 3 : 2, std::string_view(a.name));
  };
  std::vector<size_t> ranks;
  for (const MeshAxis& axis : mesh.axes)
    ranks.push_back(static_cast<size_t>(std::count_if(mesh.axes.begin(), mesh.axes.end(),
                                                      [&](const MeshAxis& other) { return key(other) < key(axis); })));
  return ranks;
}

// Keeps axes of a high rank off the network.
double cost(const AxisPlacement& place, size_t rank) {
  const double inner = 1 + 3 * static_cast<double>(rank), others = static_cast<double>(place.size - 1) / place.size;
  if (place.medium == Medium::network) return 16 * inner * others;
  return (place.medium == Medium::chip ? 0.25 : 1) * others * place.sharing / place.rails;
}

class Search {
 public:
  Search(const Mesh& mesh, std::vector<GridDimension> dims, const std::vector<RequestedPlacement>& asked)
      : mesh_(mesh),
        ranks_(traffic_ranks(mesh)),
        dims_(std::move(dims)),
        asked_(asked),
        factors_(mesh.axes.size(), Factors(dims_.size(), 1)) {
    for (const GridDimension& d : dims_) left_.push_back(d.size);
  }

  bool run() {
    next_axis(mesh_.axes.size());
    return !best_.empty();
  }
  const std::vector<Factors>& best() const { return best_; }

  std::vector<AxisPlacement> places(const std::vector<Factors>& factors) const {
    std::vector<AxisPlacement> out(factors.size());
    Factors stride(dims_.size(), 1);
    for (size_t a = factors.size(); a-- > 0;) {
      std::vector<GridPart> parts;
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (factors[a][d] > 1) parts.push_back({static_cast<int>(d), factors[a][d], stride[d]});
        stride[d] *= factors[a][d];
      }
      out[a] = place_of(mesh_.axes[a], std::move(parts), dims_);
    }
    return out;
  }

 private:
  bool may_lie(const std::string& axis, int dimension) const {
    const auto at =
        std::find_if(asked_.begin(), asked_.end(), [&](const RequestedPlacement& p) { return p.axis == axis; });
    return at == asked_.end() || at->dimensions.empty() ||
           std::find(at->dimensions.begin(), at->dimensions.end(), dimension) != at->dimensions.end();
  }

  // Assigns axes from the innermost outwards; `axis` is the number of axes that remain.
  void next_axis(size_t axis) {
    if (axis == 0) return rate();
    split(axis - 1, std::max(1, mesh_.axes[axis - 1].size), dims_.size());
  }

  // Distributes the remaining factor of an axis over the dimensions before `dimension`, larger parts on inner ones
  // first.
  void split(size_t axis, int rest, size_t dimension) {
    if (rest == 1) return next_axis(axis);
    if (dimension == 0) return;
    const size_t d = dimension - 1;
    const int most = may_lie(mesh_.axes[axis].name, static_cast<int>(d)) ? std::gcd(rest, left_[d]) : 1;
    for (int part = most; part >= 1; --part) {
      if (rest % part != 0 || left_[d] % part != 0) continue;
      factors_[axis][d] = part;
      left_[d] /= part;
      split(axis, rest / part, d);
      left_[d] *= part;
      factors_[axis][d] = 1;
    }
  }

  void rate() {
    double sum = 0;
    size_t parts = 0;
    const std::vector<AxisPlacement> all = places(factors_);
    for (size_t a = 0; a < all.size(); ++a) {
      sum += cost(all[a], ranks_[a]);
      parts += all[a].parts.size();
    }
    sum += 1e-6 * static_cast<double>(parts);  // of equals the plainer one
    if (sum >= lowest_ - 1e-9) return;
    lowest_ = sum;
    best_ = factors_;
  }

  const Mesh& mesh_;
  std::vector<size_t> ranks_;
  std::vector<GridDimension> dims_;
  const std::vector<RequestedPlacement>& asked_;
  std::vector<int> left_;
  std::vector<Factors> factors_, best_;
  double lowest_ = std::numeric_limits<double>::infinity();
};

// --- Neighbours along an axis ---

// A path from neighbour to neighbour through all points of a block; closed if the block has an even size and is not a
// line.
std::vector<std::vector<int>> walk(const std::vector<int>& sizes) {
  if (sizes.size() == 1) {
    std::vector<std::vector<int>> line;
    for (int i = 0; i < sizes[0]; ++i) line.push_back({i});
    return line;
  }
  // The dimensions before the last form one path; then the block is a sheet of path x last dimension.
  const std::vector<std::vector<int>> path = walk({sizes.begin(), sizes.end() - 1});
  const int rows = static_cast<int>(path.size()), columns = sizes.back();
  std::vector<std::vector<int>> out;
  const auto visit = [&](int row, int column) {
    out.push_back(path[static_cast<size_t>(row)]);
    out.back().push_back(column);
  };
  // One row or column stays free for the way back to the start.
  if (rows % 2 == 0 && columns > 1) {
    for (int r = 0; r < rows; ++r)
      for (int c = 1; c < columns; ++c) visit(r, r % 2 == 0 ? c : columns - c);
    for (int r = rows; r-- > 0;) visit(r, 0);
  } else if (columns % 2 == 0 && rows > 1) {
    for (int c = 0; c < columns; ++c)
      for (int r = 1; r < rows; ++r) visit(c % 2 == 0 ? r : rows - r, c);
    for (int c = columns; c-- > 0;) visit(0, c);
  } else {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) visit(r, r % 2 == 0 ? c : columns - 1 - c);
  }
  return out;
}

// The offset in the grid's row-major index of each position along the axis. Slices and nodes follow one another, each
// with the same path through its devices, as jax.experimental.mesh_utils.create_hybrid_device_mesh lays them out.
std::vector<int> offsets(const AxisPlacement& place, const Layout& layout, const std::vector<int>& grid_strides) {
  const auto is_outer = [&](const GridPart& p) {
    return layout.grid[static_cast<size_t>(p.dimension)].medium == Medium::network;
  };
  const auto step = [&](const GridPart& p) { return p.stride * grid_strides[static_cast<size_t>(p.dimension)]; };
  std::vector<int> sizes, steps, out;
  for (const GridPart& p : place.parts) {
    if (is_outer(p)) continue;
    sizes.push_back(p.size);
    steps.push_back(step(p));
  }
  for (const std::vector<int>& point : sizes.empty() ? std::vector<std::vector<int>>{{}} : walk(sizes))
    out.push_back(std::inner_product(point.begin(), point.end(), steps.begin(), 0));
  // A closed path starts beside the block's corner, but devices count from the corner.
  std::rotate(out.begin(), std::find(out.begin(), out.end(), 0), out.end());
  for (auto p = place.parts.rbegin(); p != place.parts.rend(); ++p) {
    if (!is_outer(*p)) continue;
    const std::vector<int> one = std::move(out);
    out.clear();
    for (int i = 0; i < p->size; ++i)
      for (const int offset : one) out.push_back(offset + i * step(*p));
  }
  return out;
}

std::vector<int> devices_of(const Layout& layout) {
  std::vector<int> strides(layout.grid.size(), 1);
  for (size_t d = layout.grid.size(); d-- > 1;) strides[d - 1] = strides[d] * layout.grid[d].size;
  std::vector<int> out{0};
  for (const AxisPlacement& place : layout.axes) {
    const std::vector<int> along = offsets(place, layout, strides);
    std::vector<int> next;
    next.reserve(out.size() * along.size());
    for (const int base : out)
      for (const int offset : along) next.push_back(base + offset);
    out = std::move(next);
  }
  return out;
}

// --- Refusals ---

std::string dimension_text(const std::vector<GridDimension>& dims, const std::vector<int>& which) {
  std::string text;
  for (const int d : which)
    text += (text.empty() ? "dimension " : " and ") + std::to_string(d) + " (" +
            std::to_string(dims[static_cast<size_t>(d)].size) + ")";
  return text;
}

[[noreturn]] void refuse(const Mesh& mesh, const std::vector<GridDimension>& dims, const RequestedPlacement& asked) {
  std::int64_t room = 1;
  for (const int d : asked.dimensions) room *= dims[static_cast<size_t>(d)].size;
  std::string legal, whole;
  for (std::int64_t n = 1; n <= room; ++n)
    if (room % n == 0) legal += (legal.empty() ? "" : ", ") + std::to_string(n);
  for (size_t d = 0; d < dims.size(); ++d)
    if (mesh.size(asked.axis) <= dims[d].size && dims[d].size % mesh.size(asked.axis) == 0)
      whole += (whole.empty() ? "; it fits on dimension " : ", ") + std::to_string(d);
  throw Error("MESH-PLACE", "the axis does not fit on the dimensions of its placement",
              {.place = "mesh." + asked.axis,
               .found = asked.axis + " " + std::to_string(mesh.size(asked.axis)) + " on " +
                        dimension_text(dims, asked.dimensions),
               .expected = "beside the other axes, a size among " + legal + whole,
               .fix = "give the axis one of these sizes, or remove its placement"});
}

void check_asked(const Mesh& mesh, const std::vector<GridDimension>& dims,
                 const std::vector<RequestedPlacement>& asked) {
  for (const RequestedPlacement& a : asked) {
    if (!mesh.has(a.axis))
      throw Error("MESH-PLACE", "a placement names an axis that the mesh does not define",
                  {.place = "mesh." + a.axis, .found = a.axis, .expected = to_text(mesh)});
    for (const int d : a.dimensions)
      if (d < 0 || d >= static_cast<int>(dims.size()))
        throw Error("MESH-PLACE", "a placement names a dimension that the grid does not have",
                    {.place = "mesh." + a.axis,
                     .found = std::to_string(d),
                     .expected = "0 to " + std::to_string(dims.size() - 1)});
  }
}

// Reports the first placement that is impossible together with those before it.
void refuse_first(const Mesh& mesh, const std::vector<GridDimension>& dims,
                  const std::vector<RequestedPlacement>& asked) {
  for (size_t n = 1; n <= asked.size(); ++n) {
    const std::vector<RequestedPlacement> some(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(n));
    if (!Search(mesh, dims, some).run()) refuse(mesh, dims, asked[n - 1]);
  }
}

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

std::vector<GridDimension> grid(const Mesh& mesh, const hardware::Target& target) {
  using hardware::Vendor;
  const Vendor vendor = target.chip.vendor;
  if (vendor == Vendor::cpu) return {{mesh.devices(), true, Medium::node}};
  std::vector<GridDimension> dims;
  for (size_t i = 0; i < target.shape.size(); ++i) {
    const bool nodes = vendor == Vendor::gpu && i + 1 < target.shape.size();
    const bool slices = vendor == Vendor::tpu && i == 0 && target.slices > 1;
    const Medium medium = nodes || slices ? Medium::network : vendor == Vendor::tpu ? Medium::link : Medium::node;
    dims.push_back({std::max(1, target.shape[i]), i < target.wrap.size() && target.wrap[i], medium});
  }
  if (target.chip.devices_per_chip > 1) dims.push_back({target.chip.devices_per_chip, false, Medium::chip});
  return dims;
}

Layout lay_out(const Mesh& mesh, const hardware::Target& target, const std::vector<RequestedPlacement>& asked) {
  Layout layout;
  layout.grid = grid(mesh, target);
  std::int64_t devices = 1;
  for (const GridDimension& d : layout.grid) devices *= d.size;
  const std::vector<Problem> problems = check_mesh(mesh, static_cast<int>(devices));
  if (!problems.empty()) throw Error(problems.front());
  check_asked(mesh, layout.grid, asked);
  Search search(mesh, layout.grid, asked);
  if (!search.run()) refuse_first(mesh, layout.grid, asked);
  layout.axes = search.places(search.best());
  layout.device_of = devices_of(layout);
  return layout;
}

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
