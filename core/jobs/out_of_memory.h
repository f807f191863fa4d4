// SPDX-License-Identifier: Apache-2.0
// What a run says that did not fit its devices: what each held, and the smallest changes that make it fit by the
// engine's own formulas. Any thread.
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
// Single changes that fit, the least costly first; where none does, all of them together, if that fits. Reads the data
// for its lengths. Empty where nothing fits or nothing can be said.
std::vector<MemoryFix> memory_fixes(const experiment::Experiment& experiment, std::stop_token stop = {});
std::string to_text(const MemoryFix& fix);  // "train.remat=layer (predicted peak 12 MiB of 16 MiB)"

struct MemoryReport {
  Error error;   // one report, for people
  Json summary;  // {"out_of_memory": {device, category, tensor, phase, wanted_bytes, capacity_bytes, held, largest,
                 // fixes: [{edits, peak_bytes}]}}
};
MemoryReport report_of(const engine::OutOfMemory& failure, const experiment::Experiment& experiment,
                       std::stop_token stop = {});

}  // namespace mw::jobs
