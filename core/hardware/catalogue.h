// SPDX-License-Identifier: Apache-2.0
// The hardware catalogue: chips, slices and prices as data in resources/hardware, and the user's own beside it.
#pragma once
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/hardware/target.h"

namespace mw::hardware {

class Catalogue {
 public:
  // Reads chips.json, slices.json and prices.json of `folder`, then the user's files of the same names where they exist
  // (same id: replaces). A bad row of a user's file is one problem in problems() and is left out; the shipped ones throw.
  static Catalogue load(const std::filesystem::path& folder, const std::filesystem::path& user_folder = {});
  std::span<const Chip> chips() const;
  std::span<const Price> prices() const;
  std::vector<Problem> problems() const;
  // "v5p-8" (4 chips), "v6e-8" (8), "tpu7x-8", "2xh100", "1xa100-80". Throws Error with the nearest ids and, for slice
  // names, what the suffix counts.
  Target target(std::string_view id) const;
  std::vector<std::string> target_ids() const;  // the listed ones: every slice, and 1, 2, 4, 8 of each GPU
  // The row a plan takes: of this chip, region and class where given; else on demand of the reference region.
  const Price* price(std::string_view chip, std::string_view region = {}, std::string_view price_class = {}) const;
};

}  // namespace mw::hardware
