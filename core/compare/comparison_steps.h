// SPDX-License-Identifier: Apache-2.0
// Training runs step by step: how far a metric of one is from the baseline's. Plain values; any thread.
#pragma once
#include <vector>

#include "core/views/run_view.h"

namespace mw::compare {

// Of each step that both report: {step, other / baseline - 1}. Steps whose baseline is zero or not finite are left out.
std::vector<views::Point> step_differences(const views::RunView& baseline, const views::RunView& other,
                                           const std::string& metric);

// The step with the largest difference; y is NaN where there is none.
views::Point furthest_apart(const std::vector<views::Point>& differences);

// Those that a table shows of so many: all of a few, else the first ones, then ever further apart, and the last.
std::vector<long> steps_to_show(std::vector<long> steps);

}  // namespace mw::compare
