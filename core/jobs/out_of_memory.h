// SPDX-License-Identifier: Apache-2.0
// Builds the out-of-memory report of a run: memory held by each device and the smallest changes that make the run fit
// according to the engine's formulas, with the slowdown of each if the catalogue is given. Thread-safe.
#pragma once
#include <optional>
#include <stop_token>

#include "core/base/event.h"
#include "core/engine/runtime/arena.h"
#include "core/plan/document/diagnostics.h"

namespace mw::jobs {

struct MemoryReport {
  Error error;   // the report as text
  Json summary;  // {"out_of_memory": {device, category, tensor, phase, wanted_bytes, capacity_bytes, held, largest,
                 // fixes: [{edits, label, cost, slowdown, peak_bytes}]}}
};
MemoryReport report_of(const engine::OutOfMemory& failure, const experiment::Experiment& experiment,
                       const plan::PlanContext* context, const std::stop_token& stop = {});

// The failure of a run with such a report, with its fixes; empty for another end.
std::optional<plan::Diagnostic> memory_diagnostic(const event::Finished& finished);

}  // namespace mw::jobs
