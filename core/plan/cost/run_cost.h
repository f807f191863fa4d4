// SPDX-License-Identifier: Apache-2.0
// What a recorded run cost: the time on its target times the price of the target. Thread-safe.
#pragma once
#include <optional>

#include "core/plan/calibration/plan_context.h"
#include "core/store/store.h"

namespace mw::plan {

struct RunCost {
  double usd = 0;             // so far, of a run in progress
  bool is_predicted = false;  // the time was simulated
  bool operator==(const RunCost&) const = default;
};
// Training: the time of the run. Sweeps: the durations of their points. The price is that of the experiment, else the
// list price of its target. Empty without a price, as on this machine, or without time. Throws errors of the store.
std::optional<RunCost> run_cost(const store::Store& store, const store::RunRow& run, const plan::PlanContext& context);

}  // namespace mw::plan
