// SPDX-License-Identifier: Apache-2.0
// The smallest changes that make a run fit into the memory of its devices on this machine, by the engine's formulas.
// Thread-safe.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/lint/fixes/diagnostics.h"

namespace mw::lint {

struct MemoryFix {
  std::vector<Edit> edits;
  Bytes peak;                        // predicted, of the fullest device
  Bytes capacity;                    // of a device
  std::optional<double> slowdown{};  // of a step, by the planner's arithmetic: 0.1 is 10 % slower
};
// Sets of changes of which no subset fits, the smallest first: by the number of settings, then loss chunk, remat, batch
// with accumulation, length of packed rows, weights of bf16; meshes of more devices last. Reads the data for its row
// lengths if there are any. Without a catalogue (null) no slowdown is known. Empty if nothing fits or no prediction is
// possible.
std::vector<MemoryFix> memory_fixes(const experiment::Experiment& experiment, const plan::PlanContext* context,
                                    std::stop_token stop = {});
// "train.remat=layer (predicted peak 12 MiB of 16 MiB, 30 % slower)"
std::string to_text(const MemoryFix& fix);
Fix fix_of(const MemoryFix& fix);

}  // namespace mw::lint
