// SPDX-License-Identifier: Apache-2.0
// Builds the out-of-memory report of a run: memory held by each device and the smallest changes that make the run fit
// according to the engine's formulas. Thread-safe.
#pragma once
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/runtime/arena.h"
#include "core/experiment/experiment.h"

namespace mw::jobs {

struct MemoryFix {
  std::vector<std::pair<std::string, Json>> edits;  // of the experiment
  Bytes peak;                                       // predicted, of the fullest device
  Bytes capacity;                                   // of a device
};
// Returns the single changes that fit, least costly first; if there is none, all changes combined if that fits. Reads
// the data for its row lengths. Empty if nothing fits or no prediction is possible.
std::vector<MemoryFix> memory_fixes(const experiment::Experiment& experiment, std::stop_token stop = {});
std::string to_text(const MemoryFix& fix);  // "train.remat=layer (predicted peak 12 MiB of 16 MiB)"

struct MemoryReport {
  Error error;   // the report as text
  Json summary;  // {"out_of_memory": {device, category, tensor, phase, wanted_bytes, capacity_bytes, held, largest,
                 // fixes: [{edits, peak_bytes}]}}
};
MemoryReport report_of(const engine::OutOfMemory& failure, const experiment::Experiment& experiment,
                       std::stop_token stop = {});

}  // namespace mw::jobs
