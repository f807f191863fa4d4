// SPDX-License-Identifier: Apache-2.0
// Names of TPU slices: number of chips, grid, and the dimensions with wraparound links. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/hardware/target.h"

namespace mw::hardware {

// The rule for which dimensions of a grid have the wraparound link that closes the ring.
struct WrapRule {
  enum class Kind {
    none,
    side,  // each dimension of exactly `size` chips
    cubes  // all dimensions, if each is a multiple of `size`
  };
  Kind kind = Kind::none;
  int size = 0;
  std::string source{};
};

struct Slice {
  int suffix = 0;  // the number at the end of its name
  std::vector<int> shape;
  std::vector<std::string> machines{};  // machine types: "ct6e-standard-8t"
  std::string source{};
};

struct SliceFamily {
  std::string chip;
  std::vector<std::string> prefixes;  // "v5e-", "v5litepod-"; ids use the first
  std::string counts;                 // unit that the suffix counts: "TensorCores", "chips", "JAX devices"
  int per_chip = 1;                   // units per chip
  WrapRule wrap;
  std::vector<Slice> slices;
  std::string source;
};

std::vector<bool> wrapped_dimensions(const WrapRule& rule, const std::vector<int>& shape);
int chip_count(const std::vector<int>& shape);
std::string shape_text(const std::vector<int>& shape);  // "4x4x8"

// "v5p-8: the suffix counts TensorCores, 2 per chip; 4 chips, 2x2x1, no wraparound links"
std::string describe_slice(const SliceFamily& family, const std::string& id, const std::vector<int>& shape);

// Whether the name begins as those of the family do.
bool is_of_family(const SliceFamily& family, std::string_view id);

struct NamedSlice {
  std::string id;
  std::vector<int> shape;
};
// Resolves a slice name, a machine type, or a prefix with a grid ("v5p-4x4x16"). Empty if `id` is not of this family.
// Throws TARGET-SLICE, naming the nearest slices and the unit of the suffix, if there is no slice of this size.
std::optional<NamedSlice> find_slice(const SliceFamily& family, std::string_view id);

}  // namespace mw::hardware
