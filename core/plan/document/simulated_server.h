// SPDX-License-Identifier: Apache-2.0
// The server of a serving experiment as the cost model of its target simulates it. Sweeps, searches, envelopes and
// comparisons simulate this one, so that equal documents have equal points to the last digit. Thread-safe.
#pragma once
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/plan/calibration/intervals.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/sweep.h"

namespace mw::plan {

struct ExperimentServer {
  Request request;  // of one replica
  std::unique_ptr<serve::LoadBackend> backend{};
  std::function<IntervalFactors(const formats::BenchPoint&)> intervals{};
  std::string interval_source{};  // of the intervals; empty: there are none
};
// Throws the errors of plan_request(), require_runnable() and make_cost_model_backend().
ExperimentServer simulated_server(const experiment::Experiment& experiment, const PlanContext& context);

// Adds the limits of the 90 % intervals of a predicted point: "median_tpot_ms_low", "median_tpot_ms_high".
formats::BenchPoint with_limits(formats::BenchPoint point, const IntervalFactors& factors);

// The points of the experiment's sweep in its order, without single requests. `progress` gets the requests that are
// done. Throws the errors of simulated_server() and sweep_settings(), and cancelled() after a stop.
std::vector<formats::BenchPoint> simulated_sweep(const experiment::Experiment& experiment, const PlanContext& context,
                                                 const std::function<void(long)>& progress,
                                                 const std::stop_token& stop);

struct LoadPoint {
  double request_rate = 1;  // requests/s; infinity: all at once
  int input_len = 512;
};
enum class Queueing { as_offered, none };  // none: one request at a time
// The point of the experiment's sweep: a server that keeps its cache takes the rates before it first. Throws the
// errors of simulated_server(), and cancelled() when stopped.
formats::BenchPoint simulated_point(const experiment::Experiment& experiment, const LoadPoint& point,
                                    const PlanContext& context, Queueing queueing = Queueing::as_offered,
                                    const std::stop_token& stop = {});
void check_stop(const std::stop_token& stop);  // throws cancelled("the simulation")

}  // namespace mw::plan
