// SPDX-License-Identifier: Apache-2.0
// Executes a run of kind serve: runs the sweep of the experiment on a backend and emits events. Started.info has kind
// "sweep", backend, source ("measured", "predicted"), slo and set (a BenchSet without points). Every point is an
// event::ResultPoint of kind "sweep" with the values of to_json(BenchPoint). Not thread-safe.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "core/base/event.h"
#include "core/experiment/experiment.h"
#include "core/formats/results/bench_result.h"
#include "core/plan/calibration/intervals.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/sweep.h"
#include "core/train/trainer.h"

namespace mw::jobs {

struct SweepRequest {
  experiment::Experiment experiment;
  Json info;                                // run, name
  std::vector<formats::BenchPoint> done{};  // finished points of a resumed sweep; not repeated
  plan::LoadContext context;
};
event::Finished run_sweep(const SweepRequest& request, const EventSink& sink, std::stop_token stop,
                          train::PauseGate& gate);

// The backend of an experiment: the engine, the cost model of the target, or a server over HTTP.
struct BackendParts {
  std::shared_ptr<void> owned{};  // objects that the backend uses; destroyed after it
  std::unique_ptr<serve::LoadBackend> backend{};
  std::map<std::string, std::string> conditions{};  // conditions that the backend or server reports
  std::vector<std::string> notes{};
  std::function<plan::IntervalFactors(const formats::BenchPoint&)> intervals{};  // of predicted points; or empty
};
using EmitBody = std::function<void(std::variant<event::Progress, event::Memory, event::Log>)>;

// Throws Error for a missing server or model, or a model that does not fit into memory.
BackendParts make_backend(const experiment::Experiment& experiment, const plan::PlanContext& context,
                          const EmitBody& emit);

}  // namespace mw::jobs
