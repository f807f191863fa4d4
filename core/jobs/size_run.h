// SPDX-License-Identifier: Apache-2.0
// Executes a run of kind size: measures the batches of the experiment with core/serve, or predicts them for another
// target, and emits events. Not thread-safe.
#pragma once
#include <stop_token>

#include "core/base/event.h"
#include "core/experiment/bound_experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/sizing.h"
#include "core/train/trainer.h"

namespace mw::jobs {

// Whether the sizes are predicted: the target is not this machine.
bool are_sizes_predicted(const experiment::BoundExperiment& config);

// Throws Error for invalid or missing keys, including the model.
serve::SizingSettings sizing_settings(const experiment::BoundExperiment& config);

// Emits Started and one Point per measurement, with its predicted time unless `context` is null, and returns the
// Finished event, with state cancelled after a stop. Throws on failure.
event::Finished run_sizes(const experiment::Experiment& experiment, const plan::PlanContext* context, Json info,
                          const EventSink& sink, std::stop_token stop, train::PauseGate& gate);

// Emits the events of run_sizes() for a target other than this machine: its points have predicted times and memory,
// with and without LoRA adapters. Takes well under a second.
event::Finished run_predicted_sizes(const experiment::Experiment& experiment, const plan::PlanContext& context,
                                    Json info, const EventSink& sink, const std::stop_token& stop);

}  // namespace mw::jobs
