// SPDX-License-Identifier: Apache-2.0
// Converts an experiment to the settings of a sweep: load, scheduler, backend and the conditions that a result
// records. Thread-safe.
#pragma once
#include <string_view>

#include "core/experiment/experiment.h"
#include "core/formats/results/bench_result.h"
#include "core/hardware/catalogue.h"
#include "core/serve/load/sweep.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::experiment {

enum class SweepBackend { engine, model, http };
std::string_view to_string(SweepBackend backend);
SweepBackend sweep_backend(const Experiment& experiment);  // sweep.backend; auto: engine on cpu, else model

// Both throw SWEEP for an invalid or missing value.
serve::SweepSettings sweep_settings(const Experiment& experiment);
// Sets only the block size of the KV cache; the serving backend sets its layout.
serve::SchedulerSettings scheduler_settings(const Experiment& experiment);
// Returns a result set without points: name, model, target, chips, price and conditions.
formats::BenchSet sweep_facts(const Experiment& experiment, const hardware::Catalogue& catalogue);

}  // namespace mw::experiment
