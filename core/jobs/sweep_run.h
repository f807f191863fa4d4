// SPDX-License-Identifier: Apache-2.0
// A run of kind serve: the experiment's sweep played on a backend, spoken as events. Started.info has kind "sweep",
// backend, source ("measured", "predicted"), slo and set (a BenchSet without points); every point is an event::Point of
// kind "sweep" whose values are those of to_json(BenchPoint). One run, one thread.
#pragma once
#include <functional>
#include <stop_token>
#include <vector>

#include "core/base/event.h"
#include "core/hardware/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/serve/scheduling/scheduler.h"
#include "core/serve/load/sweep.h"
#include "core/train/trainer.h"

namespace mw::runs {

enum class SweepBackend { engine, model, http };
std::string_view to_string(SweepBackend backend);
SweepBackend sweep_backend(const Experiment& experiment);  // sweep.backend; auto: engine on cpu, else model

// Throw Error for what the document says wrong or leaves out (sweep_settings.cpp).
serve::SweepSettings sweep_settings(const Experiment& experiment);
// Of its KV cache only the block size: who serves lays it out.
serve::SchedulerSettings scheduler_settings(const Experiment& experiment);
// Who serves, under which conditions: name, model, target, chips, price, conditions; no points.
formats::BenchSet sweep_facts(const Experiment& experiment, const hardware::Catalogue& catalogue);

using LoadCatalogue = std::function<hardware::Catalogue()>;
struct SweepRequest {
  Experiment experiment;
  Json info;                                // run, name
  std::vector<formats::BenchPoint> done{};  // not played again
  LoadCatalogue catalogue;
};
event::Finished run_sweep(const SweepRequest& request, const EventSink& sink, std::stop_token stop,
                          train::PauseGate& gate);

// What a record keeps of a point: all requests with their gaps where they are few, then without gaps, then none.
formats::BenchPoint as_recorded(formats::BenchPoint point);

// Throws Error for what is no point of a sweep, or no set.
std::vector<formats::BenchPoint> points_of(const std::vector<event::Point>& points);

}  // namespace mw::runs
