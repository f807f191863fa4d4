// SPDX-License-Identifier: Apache-2.0
// Compares training runs step by step. Thread-safe.
#pragma once
#include <vector>

#include "core/views/run_view.h"

namespace mw::compare {

// Returns {step, other / baseline - 1} for each step that both report. Omits steps whose baseline is zero or not
// finite.
std::vector<views::Point> step_differences(const views::RunView& baseline, const views::RunView& other,
                                           const std::string& metric);

// Returns the step with the largest difference; y is NaN if there is none.
views::Point furthest_apart(const std::vector<views::Point>& differences);

// Returns the steps that a table shows: all if there are few, else the first ones, then steps at increasing distance,
// and the last.
std::vector<long> steps_to_show(std::vector<long> steps);

}  // namespace mw::compare
