// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/mesh.h"

#include <algorithm>
#include <set>

#include "core/base/counted.h"
#include "core/base/text.h"

namespace mw::mesh {
namespace {

constexpr int kMostAxes = 8;
constexpr std::int64_t kMostDevices = 1 << 30;

std::int64_t product_but(const Mesh& mesh, size_t skip) {
  std::int64_t n = 1;
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    if (i != skip) n = std::min(n * std::max(1, mesh.axes[i].size), kMostDevices);
  return n;
}

bool is_name(std::string_view name) {
  const auto plain = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), plain);
}

std::string devices_text(int devices) {
  return counted(devices, "device");
}

// "set mesh.tp = 4, or mesh.fsdp = 2": one axis changed, the others as they are.
std::string nearest_meshes(const Mesh& mesh, int devices) {
  std::string text;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const std::int64_t others = product_but(mesh, i);
    if (devices % others != 0) continue;
    text += text.empty() ? "set " : ", or ";
    text += "mesh." + mesh.axes[i].name + " = " + std::to_string(devices / others);
  }
  if (!text.empty()) return text;
  return "choose sizes whose product is " + std::to_string(devices);
}

}  // namespace

std::string to_text(const Mesh& mesh) {
  return joined(mesh.axes, ", ", [](const MeshAxis& a) { return a.name + " " + std::to_string(a.size); });
}

std::vector<Problem> check_mesh(const Mesh& mesh, int devices) {
  std::vector<Problem> problems;
  std::set<std::string> names;
  bool sizes_good = true;
  for (const MeshAxis& a : mesh.axes) {
    if (!is_name(a.name))
      problems.push_back({.id = "MESH-AXIS",
                          .message = "not a name for a mesh axis",
                          .place = "mesh",
                          .found = a.name.substr(0, 40),
                          .expected = "letters, digits and _, at most 32"});
    else if (!names.insert(a.name).second)
      problems.push_back({.id = "MESH-AXIS",
                          .message = "two mesh axes have the same name",
                          .place = "mesh." + a.name,
                          .found = a.name,
                          .fix = "rename or remove one of them"});
    if (a.size >= 1 && a.size <= kMostDevices) continue;
    sizes_good = false;
    problems.push_back({.id = "MESH-SIZE",
                        .message = "a mesh axis has an impossible size",
                        .place = "mesh." + a.name,
                        .found = std::to_string(a.size),
                        .expected = "1 or more devices",
                        .fix = devices > 0 ? nearest_meshes(mesh, devices) : "set mesh." + a.name + " = 1"});
  }
  if (mesh.axes.size() > kMostAxes)
    problems.push_back({.id = "MESH-AXIS",
                        .message = "too many mesh axes",
                        .place = "mesh",
                        .found = std::to_string(mesh.axes.size()),
                        .expected = "at most " + std::to_string(kMostAxes)});
  if (devices > 0 && sizes_good && mesh.devices() != devices)
    problems.push_back(
        {.id = "MESH-SIZE",
         .message = "mesh uses " + devices_text(mesh.devices()) + "; target has " + std::to_string(devices),
         .place = mesh.axes.empty() ? "mesh" : "mesh." + mesh.axes.back().name,
         .found = to_text(mesh) + ": " + devices_text(mesh.devices()),
         .expected = devices_text(devices),
         .fix = nearest_meshes(mesh, devices)});
  return problems;
}

std::vector<int> coordinate(const Mesh& mesh, int index) {
  std::vector<int> at(mesh.axes.size(), 0);
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    const int size = std::max(1, mesh.axes[i].size);
    at[i] = index % size;
    index /= size;
  }
  return at;
}

}  // namespace mw::mesh
