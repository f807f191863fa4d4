// SPDX-License-Identifier: Apache-2.0
// Converts an experiment to the settings of a sweep: load, scheduler, backend and the conditions that a result
// records. Thread-safe.
#pragma once
#include "core/experiment/bound_experiment.h"
#include "core/formats/results/bench_result.h"
#include "core/hardware/catalogue.h"
#include "core/serve/load/sweep.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

options::SweepBackend sweep_backend(
    const experiment::BoundExperiment& config);  // sweep.backend; auto: engine on cpu, else model

// Throws SWEEP for an invalid or missing value.
SweepSettings sweep_settings(const experiment::BoundExperiment& config);
// Sets only the block size of the KV cache; the serving backend sets its layout.
SchedulerSettings scheduler_settings(const options::Serving& serve);
// Returns a result set without points: name, model, target, chips, price and conditions.
formats::BenchSet sweep_facts(const experiment::BoundExperiment& config, const hardware::Catalogue& catalogue);

}  // namespace mw::serve
