// SPDX-License-Identifier: Apache-2.0
// Executes a run of kind serve: runs the sweep of the experiment on a backend and emits events. Started.info has kind
// "sweep", backend, source ("measured", "predicted"), slo and set (a BenchSet without points). Every point is an
// event::Point of kind "sweep" with the values of to_json(BenchPoint). Not thread-safe.
#pragma once
#include <functional>
#include <stop_token>
#include <vector>

#include "core/base/event.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/sweep.h"
#include "core/serve/load/sweep_settings.h"
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

}  // namespace mw::jobs
