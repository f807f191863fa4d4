// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/size_constraints.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mw::mesh {
namespace {

std::int64_t product(const SizeConstraint& need, const Mesh& mesh) {
  std::int64_t n = 1;
  for (const std::string& axis : need.axes) n *= mesh.size(axis);
  return n;
}

bool same(const SizeConstraint& a, const SizeConstraint& b) {
  return a.axes == b.axes && a.size == b.size && a.dim == b.dim && a.role == b.role && a.uneven == b.uneven;
}

void collect(const std::vector<PlacedTensor>& tensors, std::vector<SizeConstraint>& out) {
  for (const PlacedTensor& t : tensors) {
    if (t.uneven == UnevenSplit::padded) continue;
    for (size_t d = 0; d < t.dims.size() && d < t.spec.dims.size(); ++d) {
      if (t.spec.dims[d].empty()) continue;
      SizeConstraint need{.axes = t.spec.dims[d],
                          .size = t.dims[d].size,
                          .dim = t.dims[d].axis,
                          .role = t.base,
                          .layer = t.layer,
                          .tensor = t.name,
                          .uneven = t.uneven};
      const auto known = std::find_if(out.begin(), out.end(), [&](const SizeConstraint& n) { return same(n, need); });
      if (known == out.end()) out.push_back(std::move(need));
    }
  }
}

// The number of doublings and halvings between two sizes.
double distance(const Mesh& a, const Mesh& b) {
  double sum = 0;
  for (const MeshAxis& axis : b.axes) sum += std::abs(std::log2(axis.size) - std::log2(a.size(axis.name)));
  return sum;
}

void extend(const std::vector<std::string>& axes, size_t at, int left, Mesh& mesh, std::vector<Mesh>& out) {
  if (at + 1 == axes.size()) {
    mesh.axes.push_back({axes[at], left});
    out.push_back(mesh);
    mesh.axes.pop_back();
    return;
  }
  for (int size = left; size >= 1; --size) {
    if (left % size != 0) continue;
    mesh.axes.push_back({axes[at], size});
    extend(axes, at + 1, left / size, mesh, out);
    mesh.axes.pop_back();
  }
}

}  // namespace

std::vector<SizeConstraint> size_constraints(const model::TensorInventory& inventory, const Mesh& mesh,
                                             const ShardingRules& rules, const std::vector<AdapterShape>& adapters,
                                             ShardingUse use) {
  Mesh ones = mesh;  // sizes of 1 divide everything, so no axis is taken out of a spec for its size
  for (MeshAxis& axis : ones.axes) axis.size = 1;
  for (const char* name : {"fsdp", "tp"})
    if (!ones.has(name)) ones.axes.push_back({name, 1});
  const Placement placement = place(inventory, ones, rules, adapters, use);
  std::vector<SizeConstraint> out;
  collect(placement.tensors, out);
  collect(placement.adapters, out);
  return out;
}

bool is_satisfied(const SizeConstraint& need, const Mesh& mesh) {
  const std::int64_t n = product(need, mesh);
  return need.size % n == 0 || (need.uneven == UnevenSplit::repeated && n % need.size == 0);
}

bool is_legal(const std::vector<SizeConstraint>& needs, const Mesh& mesh) {
  return std::all_of(needs.begin(), needs.end(), [&](const SizeConstraint& need) { return is_satisfied(need, mesh); });
}

std::vector<Mesh> factorisations(const std::vector<std::string>& axes, int devices) {
  std::vector<Mesh> out;
  Mesh mesh;
  if (!axes.empty() && devices > 0) extend(axes, 0, devices, mesh, out);
  return out;
}

Mesh nearest_legal(const std::vector<SizeConstraint>& needs, const Mesh& mesh, int devices, std::int64_t batch,
                   const std::vector<std::string>& splitting) {
  const auto splits = [&](const std::string& axis) {
    return std::find(splitting.begin(), splitting.end(), axis) != splitting.end();
  };
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes)
    if (splits(axis.name)) names.push_back(axis.name);
  if (splits("tp") && !mesh.has("tp")) names.push_back("tp");
  const std::string rows = splits("fsdp") ? "fsdp" : "data";
  if (splits(rows) && !mesh.has(rows)) names.insert(names.begin(), rows);
  Mesh best;
  double least = std::numeric_limits<double>::infinity();
  for (const Mesh& candidate : factorisations(names, devices)) {
    if (!is_legal(needs, candidate)) continue;
    const bool even = batch <= 0 || batch % batch_devices(candidate) == 0;
    const double d = distance(mesh, candidate) + (even ? 0 : 0.5);
    if (d >= least) continue;
    least = d;
    best = candidate;
  }
  return best;
}

int batch_devices(const Mesh& mesh) {
  return mesh.size("fsdp") * mesh.size("data");
}

namespace {

// Memory tiles of XLA on TPUs: openxla/xla docs on tiled layout; jax/_src/pallas/mosaic/tpu_info.py.
std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace

TileRule tile_of(const hardware::Chip& chip, int bytes_per_element) {
  const std::int64_t rows = bytes_per_element >= 4   ? chip.tile_rows_f32
                            : bytes_per_element == 2 ? chip.tile_rows_bf16
                                                     : chip.tile_rows_8bit;
  return {std::max<std::int64_t>(1, rows), std::max<std::int64_t>(1, chip.tile_columns)};
}

std::int64_t padded_bytes(std::span<const std::int64_t> shape, int bytes_per_element, const TileRule& tile) {
  if (shape.empty()) return bytes_per_element;
  std::int64_t bytes = bytes_per_element * round_up(shape.back(), tile.columns);
  if (shape.size() == 1) return bytes;
  const std::int64_t rows = shape[shape.size() - 2];
  std::int64_t step = tile.rows;
  const std::int64_t least = bytes_per_element == 1 ? 4 : 2;  // a 32-bit word holds four rows of bytes
  while (step / 2 >= std::max(rows, least)) step /= 2;
  bytes *= round_up(rows, step);
  for (size_t i = 0; i + 2 < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

}  // namespace mw::mesh
