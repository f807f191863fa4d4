// SPDX-License-Identifier: Apache-2.0
#include "core/designer/canvas.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mw::designer {

using mesh::AxisPlacement;
using mesh::GridDimension;
using mesh::GridPart;
using mesh::Layout;
using mesh::Medium;
using mesh::Mesh;

namespace {

constexpr double kChip = 0.74;   // side of a chip, of a pitch
constexpr double kGap = 0.9;     // between sheets
constexpr double kArc = 0.42;    // room for links that wrap around
constexpr double kSwitch = 0.3;  // height of a switch
constexpr double kFrame = 0.35;  // from the frame of a group to its chips
constexpr double kLine = 1.2;    // between groups: length of the network's lines

// The role of each grid dimension on the canvas; -1: none has this role.
struct Roles {
  int rows = -1, columns = -1, sheets = -1, groups = -1, chip = -1;
  bool switched = false;  // cells of a group meet in a switch; rows and columns are folded from one dimension
};

Roles roles_of(const std::vector<GridDimension>& grid) {
  Roles r;
  int end = static_cast<int>(grid.size()), first = 0;
  if (end > 0 && grid.back().medium == Medium::chip) r.chip = --end;
  if (end == 0) return r;
  if (end > 1 && grid[0].medium == Medium::network) r.groups = first++;
  if (grid[static_cast<size_t>(first)].medium == Medium::node) {
    r.switched = true;
    r.columns = first;
    return r;
  }
  const int dimensions = end - first;
  r.columns = dimensions > 1 ? first + 1 : first;
  if (dimensions > 1) r.rows = first;
  if (dimensions > 2) r.sheets = first + 2;
  return r;
}

// Columns of a block of n cells that is about as wide as it is high, or wider.
int fold(int n) {
  const int root = static_cast<int>(std::ceil(std::sqrt(n)));
  for (int columns = root; columns <= std::min(n, 3 * root); ++columns)
    if (n % columns == 0) return columns;
  return root;
}

// The coordinate of a device in the grid, row-major.
std::vector<int> point_of(const std::vector<GridDimension>& grid, int device) {
  std::vector<int> at(grid.size());
  for (size_t d = grid.size(); d-- > 0;) {
    at[d] = device % grid[d].size;
    device /= grid[d].size;
  }
  return at;
}

class Painter {
 public:
  Painter(const hardware::Target& target, const Layout& layout)
      : grid_(layout.grid), roles_(roles_of(grid_)), target_(target) {
    position_.resize(layout.device_of.size());
    for (size_t i = 0; i < layout.device_of.size(); ++i)
      position_[static_cast<size_t>(layout.device_of[i])] = static_cast<int>(i);
    in_chip_ = size(roles_.chip);
    in_row_ = roles_.switched ? fold(size(roles_.columns)) : size(roles_.columns);
    rows_ = roles_.switched ? (size(roles_.columns) + in_row_ - 1) / in_row_ : size(roles_.rows);
    arc_ = std::any_of(grid_.begin(), grid_.end(),
                       [](const GridDimension& d) { return d.wrap && d.medium == Medium::link; })
               ? kArc
               : 0;
  }

  CanvasPicture run(const Layout& layout) {
    place_chips();
    if (roles_.switched)
      add_switches();
    else
      add_links();
    add_sides(layout);
    for (const AxisPlacement& a : layout.axes)
      if (a.medium == Medium::network) out_.network_axes.push_back(a.axis);
    return std::move(out_);
  }

 private:
  int size(int dimension) const { return dimension < 0 ? 1 : grid_[static_cast<size_t>(dimension)].size; }
  int at(const std::vector<int>& coordinate, int dimension) const {
    return dimension < 0 ? 0 : coordinate[static_cast<size_t>(dimension)];
  }
  double sheet_width() const { return in_row_ + arc_; }
  double sheet_height() const { return rows_ + arc_ + (roles_.switched ? kSwitch : 0); }
  // `count` boxes of a size, side by side in rows.
  struct Tiles {
    int count = 1, in_row = 1;
    double width = 0, height = 0, gap = 0;  // of one, and between two
    int rows() const { return (count + in_row - 1) / in_row; }
    Box at(int i) const { return {i % in_row * (width + gap), i / in_row * (height + gap), width, height}; }
    double whole_width() const { return in_row * width + (in_row - 1) * gap; }
    double whole_height() const { return rows() * height + (rows() - 1) * gap; }
  };
  static Tiles tiles(int count, double width, double height, double gap) {
    return {count, count > 1 ? fold(count) : 1, width, height, gap};
  }

  void place_chips() {
    const Tiles sheets = tiles(size(roles_.sheets), sheet_width(), sheet_height(), kGap);
    const double frame = size(roles_.groups) > 1 ? kFrame : 0;
    const Tiles groups =
        tiles(size(roles_.groups), sheets.whole_width() + 2 * frame, sheets.whole_height() + 2 * frame, kLine);
    out_.width = groups.whole_width();
    out_.height = groups.whole_height();
    if (groups.count > 1) add_groups(groups);
    int chips = 1;
    for (size_t d = 0; d < grid_.size(); ++d)
      if (static_cast<int>(d) != roles_.chip) chips *= grid_[d].size;
    for (int c = 0; c < chips; ++c) {
      CanvasChip chip;
      chip.coordinate = coordinate_of(c);
      const Box group = groups.at(at(chip.coordinate, roles_.groups)),
                sheet = sheets.at(at(chip.coordinate, roles_.sheets));
      const double x0 = group.x + frame + sheet.x, y0 = group.y + frame + sheet.y;
      const int column = at(chip.coordinate, roles_.columns);
      const int across = roles_.switched ? column % in_row_ : column;
      const int down = roles_.switched ? column / in_row_ : at(chip.coordinate, roles_.rows);
      chip.at = {x0 + arc_ / 2 + across + (1 - kChip) / 2, y0 + arc_ / 2 + down + (1 - kChip) / 2, kChip, kChip};
      for (int d = 0; d < in_chip_; ++d) {
        const int device = c * in_chip_ + d;
        const double width = kChip / in_chip_;
        chip.devices.push_back(device);
        out_.devices.push_back(
            {{chip.at.x + d * width, chip.at.y, width, kChip}, c, position_[static_cast<size_t>(device)]});
      }
      out_.chips.push_back(std::move(chip));
    }
  }

  void add_groups(const Tiles& groups) {
    for (int g = 0; g < groups.count; ++g) {
      out_.groups.push_back({groups.at(g), (roles_.switched ? "node " : "slice ") + std::to_string(g)});
      if (g % groups.in_row + 1 < groups.in_row && g + 1 < groups.count) out_.network.push_back({g, g + 1});
      if (g + groups.in_row < groups.count) out_.network.push_back({g, g + groups.in_row});
    }
  }

  // In the target's shape, without the devices of a chip, which are the last dimension.
  std::vector<int> coordinate_of(int chip) const {
    std::vector<int> out = point_of(grid_, chip * in_chip_);
    if (roles_.chip >= 0) out.pop_back();
    return out;
  }
  int chip_at(const std::vector<int>& coordinate) const {
    int chip = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) chip = chip * grid_[d].size + coordinate[d];
    return chip;
  }

  void add_links() {
    for (size_t c = 0; c < out_.chips.size(); ++c)
      for (size_t d = 0; d < out_.chips[c].coordinate.size(); ++d) {
        if (static_cast<int>(d) == roles_.groups) continue;  // over the network, not from chip to chip
        std::vector<int> next = out_.chips[c].coordinate;
        const bool last = ++next[d] == grid_[d].size;
        if (last && (!grid_[d].wrap || grid_[d].size < 3)) continue;
        if (last) next[d] = 0;
        out_.links.push_back({static_cast<int>(c), chip_at(next), static_cast<int>(d), last});
      }
  }

  void add_switches() {
    const int groups = size(roles_.groups), each = size(roles_.columns);
    if (each < 2) return;
    for (int s = 0; s < groups; ++s) {
      CanvasSwitch one;
      one.name = target_.chip.vendor == hardware::Vendor::cpu ? "shared memory" : "node";
      for (int i = 0; i < each; ++i) one.chips.push_back(s * each + i);
      const Box first = out_.chips[static_cast<size_t>(one.chips.front())].at;
      one.at = {first.x, first.y - (1 - kChip) / 2 + rows_, in_row_ - (1 - kChip), kSwitch * 0.5};
      out_.switches.push_back(std::move(one));
    }
  }

  void add_sides(const Layout& layout) {
    using Where = CanvasSide::Where;
    const auto side = [&](int dimension, Where where, const char* name) {
      if (size(dimension) < 2) return;
      CanvasSide s{dimension, size(dimension), where, name, {}};
      std::vector<std::pair<int, std::string>> axes;  // by stride
      for (const AxisPlacement& a : layout.axes)
        for (const GridPart& p : a.parts)
          if (p.dimension == dimension) axes.emplace_back(-p.stride, a.axis);
      std::stable_sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (auto& [stride, axis] : axes) s.axes.push_back(std::move(axis));
      out_.sides.push_back(std::move(s));
    };
    const bool cpu = target_.chip.vendor == hardware::Vendor::cpu;
    side(roles_.rows, Where::left, "rows");
    side(roles_.columns, Where::top, !roles_.switched ? "columns" : cpu ? "virtual devices" : "GPUs of a node");
    side(roles_.sheets, Where::layers, "layers");
    side(roles_.groups, Where::network, roles_.switched ? "nodes" : "slices");
    side(roles_.chip, Where::chip, "devices of a chip");
  }

  const std::vector<GridDimension>& grid_;
  const Roles roles_;
  const hardware::Target& target_;
  std::vector<int> position_;
  int in_chip_ = 1, in_row_ = 1, rows_ = 1;
  double arc_ = 0;
  CanvasPicture out_;
};

// The grid index of the neighbour at distance `by` along a dimension, with wrap-around.
int moved_along(const std::vector<GridDimension>& grid, int device, int dimension, int by) {
  int stride = 1;
  for (size_t d = grid.size(); d-- > static_cast<size_t>(dimension) + 1;) stride *= grid[d].size;
  const int size = grid[static_cast<size_t>(dimension)].size, at = device / stride % size;
  return device + ((at + by) % size - at) * stride;
}

CanvasEdge edge(const std::vector<GridDimension>& grid, int a, int b) {
  const std::vector<int> p = point_of(grid, a), q = point_of(grid, b);
  const int sheets = roles_of(grid).sheets;
  CanvasEdge out{a, b, CanvasEdge::Way::direct};
  for (size_t d = 0; d < grid.size(); ++d) {
    const int far = std::abs(p[d] - q[d]);
    if (far == 0) continue;
    if (static_cast<int>(d) == sheets)
      out.way = CanvasEdge::Way::sheets;
    else if (grid[d].wrap && 2 * far > grid[d].size)
      out.way = CanvasEdge::Way::wrap;
  }
  return out;
}

bool is_torus(const AxisPlacement& place) {
  return place.medium == Medium::link && place.rails > 2;
}

}  // namespace

CanvasPicture canvas_picture(const hardware::Target& target, const Layout& layout) {
  return Painter(target, layout).run(layout);
}

std::vector<PieceArea> piece_areas(const mesh::PlacedTensor& tensor, const Mesh& mesh, const Layout& layout) {
  std::vector<size_t> split;
  for (size_t d = 0; d < tensor.pieces.size(); ++d)
    if (tensor.pieces[d] > 1) split.push_back(d);
  std::vector<PieceArea> views(layout.device_of.size());
  for (size_t i = 0; i < layout.device_of.size(); ++i) {
    PieceArea& v = views[static_cast<size_t>(layout.device_of[i])];
    v.index = piece_index(tensor, mesh, static_cast<int>(i));
    if (v.index < 0) continue;
    const std::vector<mesh::IndexInterval> ranges = piece(tensor, mesh, static_cast<int>(i));
    const auto share = [&](size_t d, double& from, double& to) {
      from = static_cast<double>(ranges[d].begin) / static_cast<double>(tensor.dims[d].size);
      to = static_cast<double>(ranges[d].end) / static_cast<double>(tensor.dims[d].size);
    };
    if (!split.empty()) share(split.back(), v.left, v.right);
    if (split.size() > 1) share(split.front(), v.top, v.bottom);
  }
  return views;
}

std::vector<CanvasEdge> axis_edges(const Mesh& mesh, const Layout& layout, std::string_view axis) {
  std::vector<CanvasEdge> out;
  size_t a = 0;
  while (a < layout.axes.size() && layout.axes[a].axis != axis) ++a;
  if (a == layout.axes.size() || layout.axes[a].size < 2) return out;
  const AxisPlacement& place = layout.axes[a];
  const int devices = static_cast<int>(layout.device_of.size());
  const Roles roles = roles_of(layout.grid);
  if (roles.switched) {
    for (int d = 0; d < devices; ++d) out.push_back({.a = d, .b = -1});
    return out;
  }
  if (is_torus(place)) {
    for (int d = 0; d < devices; ++d)
      for (const GridPart& p : place.parts)
        out.push_back(edge(layout.grid, d, moved_along(layout.grid, d, p.dimension, p.stride)));
    return out;
  }
  int step = 1;
  for (size_t b = a + 1; b < mesh.axes.size(); ++b) step *= std::max(1, mesh.axes[b].size);
  const int in_group = devices / (roles.groups < 0 ? 1 : layout.grid[0].size);
  const auto add = [&](int from, int to) {
    const int a_device = layout.device_of[static_cast<size_t>(from)],
              b_device = layout.device_of[static_cast<size_t>(to)];
    if (a_device / in_group == b_device / in_group) out.push_back(edge(layout.grid, a_device, b_device));
  };
  for (int first = 0; first < devices; ++first) {
    if (first / step % place.size != 0) continue;
    for (int i = 0; i + 1 < place.size; ++i) add(first + i * step, first + (i + 1) * step);
    if (place.ring && place.size > 2) add(first + (place.size - 1) * step, first);
  }
  return out;
}

std::string device_text(const Mesh& mesh, const Layout& layout, const mesh::PlacedTensor* tensor, int device) {
  std::string text = "device " + std::to_string(device) + " at ";
  for (const char* before = ""; const int n : point_of(layout.grid, device))
    text += std::exchange(before, ", ") + std::to_string(n);
  const auto at = std::find(layout.device_of.begin(), layout.device_of.end(), device);
  if (at == layout.device_of.end()) return text;
  const int position = static_cast<int>(at - layout.device_of.begin());
  const std::vector<int> coordinates = coordinate(mesh, position);
  for (size_t a = 0; a < mesh.axes.size(); ++a)
    text += (a == 0 ? "; " : ", ") + mesh.axes[a].name + " " + std::to_string(coordinates[a]);
  if (!tensor) return text;
  const std::int64_t index = piece_index(*tensor, mesh, position);
  if (index < 0) return text + "; holds no piece of " + tensor->name;
  text += tensor->shards == 1 ? "; complete:"
                              : "; piece " + std::to_string(index + 1) + " of " + std::to_string(tensor->shards) + ":";
  for (const char* times = " "; const mesh::IndexInterval& r : piece(*tensor, mesh, position))
    text += std::exchange(times, " x ") + std::to_string(r.end - r.begin);
  return text;
}

std::string placement_text(const AxisPlacement& place, const CanvasPicture& picture) {
  if (place.parts.empty()) return "one device";
  std::string on;
  for (const GridPart& p : place.parts)
    for (const CanvasSide& s : picture.sides)
      if (s.dimension == p.dimension) on += (on.empty() ? "" : " and ") + s.name;
  const std::string size = std::to_string(place.size);
  std::string text;
  if (place.medium == Medium::network)
    text = size + " over the network: ";
  else if (place.medium == Medium::node || place.medium == Medium::chip)
    text = size + " next to each other: ";
  else
    text = (is_torus(place) ? "torus of " : place.ring ? "ring of " : "line of ") + size + ": ";
  text += on;
  if (place.sharing > 1) text += ", links shared by " + std::to_string(place.sharing);
  return text;
}

}  // namespace mw::designer
