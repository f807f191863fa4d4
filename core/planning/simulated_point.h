// SPDX-License-Identifier: Apache-2.0
// Predicts one load point of an experiment with the scheduler and the cost model on a virtual clock. Thread-safe.
#pragma once
#include <stop_token>

#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/sweep_settings.h"

namespace mw::planning {

struct LoadPoint {
  double request_rate = 1;  // requests/s; infinity: all at once
  int input_len = 512;
};
enum class Queueing { as_offered, none };  // none: one request at a time
// Simulates the sweep of the experiment up to this point, so that caches have the same content as in the sweep. Throws
// the errors of plan_request() and require_runnable(), and cancelled() when stopped.
formats::BenchPoint simulated_point(const experiment::Experiment& experiment, const LoadPoint& point,
                                    const plan::PlanContext& context, Queueing queueing = Queueing::as_offered,
                                    const std::stop_token& stop = {});

}  // namespace mw::planning
