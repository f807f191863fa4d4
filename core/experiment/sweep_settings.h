// SPDX-License-Identifier: Apache-2.0
// From the document to the settings of a sweep: load, scheduler, backend and the conditions a result records. Any
// thread.
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

// Throw Error for what the document says wrong or leaves out.
serve::SweepSettings sweep_settings(const Experiment& experiment);
// Of its KV cache only the block size: who serves lays it out.
serve::SchedulerSettings scheduler_settings(const Experiment& experiment);
// Who serves, under which conditions: name, model, target, chips, price, conditions; no points.
formats::BenchSet sweep_facts(const Experiment& experiment, const hardware::Catalogue& catalogue);

}  // namespace mw::experiment
