// SPDX-License-Identifier: Apache-2.0
// The hardware catalogue: chips, slices and prices as data in resources/hardware, and the user's own beside it.
// Plain values once loaded; any thread.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/hardware/slices.h"
#include "core/hardware/target.h"

namespace mw::hardware {

class Catalogue {
 public:
  // Reads chips.json, slices.json and prices.json of `folder`, then those of the user's folder as add() does. A bad row
  // of the shipped ones throws.
  static Catalogue load(const std::filesystem::path& folder, const std::filesystem::path& user_folder = {});
  // The user's files of the same names, and calibration.json, where they exist (same id: replaces). A bad row is one
  // problem in problems() and is left out.
  void add(const std::filesystem::path& user_folder);
  // The user's calibration.json where there is one, else the shipped one; may not exist. Read by core/plan.
  const std::filesystem::path& calibration() const { return calibration_; }
  std::span<const Chip> chips() const { return chips_; }
  std::span<const SliceFamily> slices() const { return slices_; }
  std::span<const Price> prices() const { return prices_; }
  std::vector<Problem> problems() const { return problems_; }
  const Chip* chip(std::string_view id) const;  // null where there is none
  // "v5p-8" (4 chips), "v6e-8" (8), "v5p-4x4x16", "ct6e-standard-8t", "tpu7x-8", "2xh100", "1xa100-80", "cpu", and
  // "cpu-8": this machine shared by eight virtual devices. Throws Error TARGET or TARGET-SLICE with the nearest ids
  // and, for slice names, what the suffix counts.
  Target target(std::string_view id) const;
  std::vector<std::string> target_ids() const;  // the listed ones: every slice, 1, 2, 4, 8 of each GPU, and cpu
  // The row a plan takes: of this chip, region and class where given; else on demand of the reference region, which is
  // the first in the file. Null where no row fits.
  const Price* price(std::string_view chip, std::string_view region = {}, std::string_view price_class = {}) const;
  void set_this_machine(Chip cpu) { this_machine_ = std::move(cpu); }  // measured figures in place of the guesses

 private:
  enum class BadRows { thrown, collected };
  void read(const std::filesystem::path& folder, BadRows bad);
  Target gpus(std::string_view id, int count, const Chip& chip) const;

  std::filesystem::path calibration_;
  std::vector<Chip> chips_;
  std::vector<SliceFamily> slices_;
  std::vector<Price> prices_;
  std::vector<Problem> problems_;
  Chip this_machine_;
};

// This computer as a chip, from its core count and memory; speeds are rough floors marked derived until measured.
Chip this_machine();
Target cpu_target(const Chip& machine, int devices);

// Loads the catalogue when it is needed: the shipped rows with the user's own. Called on any thread.
using LoadCatalogue = std::function<Catalogue()>;

}  // namespace mw::hardware
