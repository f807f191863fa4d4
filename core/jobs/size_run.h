// SPDX-License-Identifier: Apache-2.0
// A run of kind size: the experiment's batches measured by core/serve, spoken as events. One run, one thread.
#pragma once
#include <stop_token>

#include "core/base/event.h"
#include "core/experiment/experiment.h"
#include "core/serve/load/sizing.h"
#include "core/train/trainer.h"

namespace mw::jobs {

// Throws Error for what the document says wrong or leaves out, the model included.
serve::SizingSettings sizing_settings(const experiment::Experiment& experiment);

// Emits Started, a Point each, Finished's parts; returns the latter. Failures throw, a stop ends in state cancelled.
event::Finished run_sizes(const experiment::Experiment& experiment, Json info, const EventSink& sink,
                          std::stop_token stop, train::PauseGate& gate);

}  // namespace mw::jobs
