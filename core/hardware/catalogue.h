// SPDX-License-Identifier: Apache-2.0
// The hardware catalogue: chips, slices and prices read from resources/hardware and from a folder of the user.
// Thread-safe once loaded.
#pragma once
#include <filesystem>
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
  // Reads chips.json, slices.json and prices.json in `folder`, then calls add(user_folder). Throws for an invalid row
  // in `folder`.
  static Catalogue load(const std::filesystem::path& folder, const std::filesystem::path& user_folder = {});
  // Adds the files of the same names and calibration.json in `user_folder`, as far as they exist. A row with a known id
  // replaces the old one. An invalid row is skipped and reported in problems().
  void add(const std::filesystem::path& user_folder);
  // Path of the user's calibration.json if it exists, else of the shipped one, which may not exist.
  const std::filesystem::path& calibration() const { return calibration_; }
  std::span<const Chip> chips() const { return chips_; }
  std::span<const SliceFamily> slices() const { return slices_; }
  std::span<const Price> prices() const { return prices_; }
  std::vector<Problem> problems() const { return problems_; }
  const Chip* chip(std::string_view id) const;  // null if unknown
  // "v5p-8" (4 chips), "v6e-8" (8), "v5p-4x4x16", "ct6e-standard-8t", "tpu7x-8", "2xv6e-256" (two slices over the
  // data-centre network), "2xh100", "1xa100-80", "cpu", and
  // "cpu-8": this machine as eight virtual devices. Throws TARGET or TARGET-SLICE with the nearest ids and, for slice
  // names, the unit that the suffix counts. `place`: the key that names the target.
  Target target(std::string_view id, std::string_view place = "target.id") const;
  std::vector<std::string> target_ids() const;  // all slices, 1, 2, 4, 8 of each GPU, and cpu
  // The first price of this chip, region and class. Default class: on demand, or that of the chip's first row if no row
  // is on demand. Default region: the first in the file. Null if there is none.
  const Price* price(std::string_view chip, std::string_view region = {}, std::string_view price_class = {}) const;
  // The row that says that no price of this chip is published, and when that was looked up. Null if there is none.
  const Price* unpublished(std::string_view chip) const;

 private:
  enum class InvalidRows { thrown, collected };
  void read(const std::filesystem::path& folder, InvalidRows invalid_rows);
  Target gpus(std::string_view id, int count, const Chip& chip) const;
  Target multi_slice(std::string_view id, int count, std::string_view slice) const;

  std::filesystem::path calibration_;
  std::vector<Chip> chips_;
  std::vector<SliceFamily> slices_;
  std::vector<Price> prices_;
  std::vector<Problem> problems_;
  Chip this_machine_;
};

// This computer as a chip. Speeds are conservative estimates from the number of cores, marked as derived.
Chip this_machine();
// `devices` virtual devices that share the cores, bandwidth and memory of one machine.
Target cpu_target(const Chip& machine, int devices);
}  // namespace mw::hardware
