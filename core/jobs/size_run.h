// SPDX-License-Identifier: Apache-2.0
// Executes a run of kind size: measures the batches of the experiment with core/serve and emits events. Not
// thread-safe.
#pragma once
#include <stop_token>

#include "core/base/event.h"
#include "core/experiment/config.h"
#include "core/serve/load/sizing.h"
#include "core/train/trainer.h"

namespace mw::jobs {

// Throws Error for invalid or missing keys, including the model.
serve::SizingSettings sizing_settings(const experiment::ExperimentConfig& config);

// Emits Started and one Point per measurement, and returns the Finished event, with state cancelled after a stop.
// Throws on failure.
event::Finished run_sizes(const experiment::ExperimentConfig& config, Json info, const EventSink& sink,
                          std::stop_token stop, train::PauseGate& gate);

}  // namespace mw::jobs
