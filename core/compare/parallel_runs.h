// SPDX-License-Identifier: Apache-2.0
// Compared training runs for parallel coordinates: their settings and results. Thread-safe.
#pragma once
#include "core/compare/comparison.h"
#include "core/views/parallel_axes.h"

namespace mw::compare {

// One per run, also of those without training.
std::vector<views::ParallelRun> parallel_runs(const std::vector<ComparedRun>& runs);

}  // namespace mw::compare
