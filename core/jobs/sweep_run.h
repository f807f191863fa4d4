// SPDX-License-Identifier: Apache-2.0
// A run of kind serve: the experiment's sweep played on a backend, spoken as events. Started.info has kind "sweep",
// backend, source ("measured", "predicted"), slo and set (a BenchSet without points); every point is an event::Point of
// kind "sweep" whose values are those of to_json(BenchPoint). One run, one thread.
#pragma once
#include <functional>
#include <stop_token>
#include <vector>

#include "core/base/event.h"
#include "core/experiment/sweep_settings.h"
#include "core/hardware/catalogue.h"
#include "core/serve/load/sweep.h"
#include "core/train/trainer.h"

namespace mw::jobs {

struct SweepRequest {
  experiment::Experiment experiment;
  Json info;                                // run, name
  std::vector<formats::BenchPoint> done{};  // not played again
  hardware::LoadCatalogue catalogue;
};
event::Finished run_sweep(const SweepRequest& request, const EventSink& sink, std::stop_token stop,
                          train::PauseGate& gate);

}  // namespace mw::jobs
