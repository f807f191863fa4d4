// SPDX-License-Identifier: Apache-2.0
// The factors by which two servers differ, changed one at a time in a fixed order, hardware first. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/experiment.h"

namespace mw::compare {

inline constexpr std::string_view kLoadFactor = "load";

struct FactorChange {
  std::string name{};               // "chips and software", "KV type" ...
  std::string text{};               // "target.id: v6e-8 -> 2xh100"
  experiment::Experiment server{};  // the baseline with this change and all before it
};
// Factors that do not differ are left out. Keys that belong to no factor stay those of the baseline.
std::vector<FactorChange> factor_changes(const experiment::Experiment& baseline, const experiment::Experiment& other);

}  // namespace mw::compare
