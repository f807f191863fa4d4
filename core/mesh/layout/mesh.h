// SPDX-License-Identifier: Apache-2.0
// Checks and texts of a mesh (core/options/mesh.h). Any thread.
#pragma once
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/options/mesh.h"

namespace mw::mesh {

// Validates axis names and sizes, and the product of the sizes against `devices` (0: any number). Returns MESH-SIZE and
// MESH-AXIS problems, whose fix names the nearest legal values.
std::vector<Problem> check_mesh(const Mesh& mesh, int devices);
// "fsdp 1, tp 4"
std::string to_text(const Mesh& mesh);

// The coordinate along each axis of the device at row-major position `index`.
std::vector<int> coordinate(const Mesh& mesh, int index);

}  // namespace mw::mesh
