// SPDX-License-Identifier: Apache-2.0
// Estimates how much of the gap between the baseline and another column each difference explains: the planner
// (training: speed) or the simulator (serving: a latency at a common load) predicts the baseline with only that
// difference changed. Shares are of logarithms, because effects multiply; they need not add up to 1, because
// differences interact and predictions have errors. Thread-safe.
#pragma once
#include <stop_token>

#include "core/compare/waterfall.h"

namespace mw::compare {

// The predictions to make, copied from the columns, which may then change.
struct GapInput {
  Gap gap{};  // without predictions
  std::vector<experiment::Experiment> documents{};
  std::optional<LoadPoint> load{};   // serving
  WaterfallMetric metric{};          // serving
  std::vector<double> row_tokens{};  // training: mean tokens of a row, by column; NaN: not recorded
};
GapInput gap_input(const Comparison& comparison, const std::vector<ComparedRun>& runs);

// Adds the effects of all settings and confounders, sorts the confounders by their share, and renews the verdict: a
// confounder that changes nothing but speed, and that by less than 1 %, does not count. What cannot be predicted has a
// reason. Slow for serving: one simulation per difference and column. Throws only cancelled().
Comparison with_effects(Comparison comparison, const GapInput& input, const plan::PlanContext& context,
                        const std::stop_token& stop = {});

}  // namespace mw::compare
