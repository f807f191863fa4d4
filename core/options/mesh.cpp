// SPDX-License-Identifier: Apache-2.0
#include "core/options/mesh.h"

#include <algorithm>
#include <cstdint>

namespace mw::mesh {
namespace {

constexpr std::int64_t kMostDevices = 1 << 30;

}  // namespace

int Mesh::devices() const {
  std::int64_t n = 1;
  for (const MeshAxis& a : axes) n = std::min(n * std::max(1, a.size), kMostDevices);
  return static_cast<int>(n);
}

int Mesh::size(std::string_view axis) const {
  for (const MeshAxis& a : axes)
    if (a.name == axis) return static_cast<int>(std::clamp<std::int64_t>(a.size, 1, kMostDevices));
  return 1;
}

bool Mesh::has(std::string_view axis) const {
  return std::any_of(axes.begin(), axes.end(), [&](const MeshAxis& a) { return a.name == axis; });
}

}  // namespace mw::mesh
