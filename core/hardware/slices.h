// SPDX-License-Identifier: Apache-2.0
// What a slice name means: how many chips, in which grid, and which of its sides close to rings. Any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/hardware/target.h"

namespace mw::hardware {

// Which sides of a grid have the link that closes the ring.
struct WrapRule {
  enum class Kind {
    none,
    side,
    cubes
  };  // side: each side of exactly `size`; cubes: all, once every side is a multiple
  Kind kind = Kind::none;
  int size = 0;
  std::string source{};
};

struct Slice {
  int suffix = 0;  // what its name ends in
  std::vector<int> shape;
  std::vector<std::string> machines{};  // of a cloud: "ct6e-standard-8t"
  std::string source{};
};

struct SliceFamily {
  std::string chip;
  std::vector<std::string> prefixes;  // "v5e-", "v5litepod-"; the first makes the id
  std::string counts;                 // what the suffix counts: "TensorCores", "chips", "JAX devices"
  int per_chip = 1;                   // of them on a chip
  WrapRule wrap;
  std::vector<Slice> slices;
  std::string source;
};

std::vector<bool> wraps(const WrapRule& rule, const std::vector<int>& shape);
int chip_count(const std::vector<int>& shape);
std::string shape_text(const std::vector<int>& shape);  // "4x4x8"

// "v5p-8: the suffix counts TensorCores, 2 to a chip; 4 chips, 2x2x1, no side closes to a ring"
std::string explain(const SliceFamily& family, const std::string& id, const std::vector<int>& shape);

// The grid of a slice name or machine type, or of a family's prefix with a grid ("v5p-4x4x16"). Empty where `id` is
// none of the family's. Throws Error TARGET-SLICE for a suffix that no slice has, naming its neighbours and what it
// counts.
struct FoundSlice {
  std::string id;  // the family's own name of it
  std::vector<int> shape;
};
std::vector<FoundSlice> find_slice(const SliceFamily& family, std::string_view id);  // none or one

}  // namespace mw::hardware
