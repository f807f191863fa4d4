// SPDX-License-Identifier: Apache-2.0
// Predicts one load point of an experiment with the scheduler and the cost model on a virtual clock. Thread-safe.
#pragma once
#include <stop_token>

#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/sweep_settings.h"

namespace mw::serve {

struct LoadPoint {
  double request_rate = 1;  // requests/s; infinity: all at once
  int input_len = 512;
};
enum class Queueing { as_offered, none };  // none: one request at a time
// The point of the experiment's sweep: a server that keeps its cache takes the rates before it first. Throws the
// errors of simulated_server(), and cancelled() when stopped.
formats::BenchPoint simulated_point(const experiment::Experiment& experiment, const LoadPoint& point,
                                    const plan::PlanContext& context, Queueing queueing = Queueing::as_offered,
                                    const std::stop_token& stop = {});

}  // namespace mw::serve
