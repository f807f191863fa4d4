// SPDX-License-Identifier: Apache-2.0
// Runs in parallel coordinates: an axis for each setting that differs and for each result, a place on it for each run.
// Pure functions; any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/store/run_settings.h"

namespace mw::views {

struct ParallelResult {
  std::string label, unit{};
  std::optional<double> value{};
};
struct ParallelRun {
  store::RunSettings settings{};
  std::vector<ParallelResult> results{};  // the same ones in every run
};

struct ParallelAxis {
  struct Stop {
    double place = 0;
    std::string text{};
  };
  std::string label{}, unit{};
  bool is_result = false;
  bool is_log = false;
  std::vector<Stop> stops{};
  std::vector<std::optional<double>> places{};  // by run: 0 is the lower end, 1 the upper one; empty: not recorded
};

// Settings that differ, the most telling ones first, then results that some run has. Numbers have a linear or, from a
// factor of 20 on, a logarithmic axis; other texts have a place each.
std::vector<ParallelAxis> parallel_axes(const std::vector<ParallelRun>& runs);

}  // namespace mw::views
