// SPDX-License-Identifier: Apache-2.0
// The charts of a report, as HTML. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/compare/comparison.h"

namespace mw::report {

// Metrics over steps and memory of training runs; latency and throughput by load of sweeps. `names`: by run.
std::string report_charts(const std::vector<compare::ComparedRun>& runs, const std::vector<std::string>& names);

}  // namespace mw::report
