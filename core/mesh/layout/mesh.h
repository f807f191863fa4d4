// SPDX-License-Identifier: Apache-2.0
// A logical mesh of devices. Plain values; any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace mw::mesh {

struct MeshAxis {
  std::string name;  // "fsdp", "tp", "data" or any other
  int size = 1;
  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;             // outermost first, as in jax.make_mesh
  int devices() const;                    // the product of the sizes, at most 2^30; sizes below 1 count as 1
  int size(std::string_view axis) const;  // 1 if the mesh has no such axis
  bool has(std::string_view axis) const;
  bool operator==(const Mesh&) const = default;
};
// Validates axis names and sizes, and the product of the sizes against `devices` (0: any number). Returns MESH-SIZE and
// MESH-AXIS problems, whose fix names the nearest legal values.
std::vector<Problem> check_mesh(const Mesh& mesh, int devices);
// "fsdp 1, tp 4"
std::string to_text(const Mesh& mesh);

// The coordinate along each axis of the device at row-major position `index`.
std::vector<int> coordinate(const Mesh& mesh, int index);

}  // namespace mw::mesh
