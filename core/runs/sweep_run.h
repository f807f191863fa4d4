// SPDX-License-Identifier: Apache-2.0
// A run of kind serve: the experiment's sweep played on a backend, spoken as events. Started.info has kind "sweep",
// backend, source ("measured", "predicted"), set (a BenchSet without points); every point is an event::Point of kind
// "sweep" whose values are to_json(BenchPoint, Detail::requests). One run, one thread.
#pragma once
#include <stop_token>

#include "core/base/event.h"
#include "core/plan/request.h"
#include "core/runs/experiment.h"
#include "core/serve/sweep.h"
#include "core/train/trainer.h"

namespace mw::runs {

enum class SweepBackend { engine, model, http };
std::string_view to_string(SweepBackend backend);
SweepBackend sweep_backend(const Experiment& experiment);  // sweep.backend; auto: engine on cpu, else model

// Throws Error for what the document says wrong or leaves out.
serve::SweepSettings sweep_settings(const Experiment& experiment);
// Who serves, under which conditions: name, model, target, chips, price, conditions; no points.
formats::BenchSet sweep_facts(const Experiment& experiment);

event::Finished run_sweep(const Experiment& experiment, Json info, const std::vector<formats::BenchPoint>& done,
                          const EventSink& sink, std::stop_token stop, train::PauseGate& gate);

}  // namespace mw::runs
