// SPDX-License-Identifier: Apache-2.0
// The state of compared training runs at one playhead: the same step or the same time of each. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/views/parallel_axes.h"
#include "core/views/step_snapshot.h"

namespace mw::compare {

struct RunSnapshot {
  size_t column = 0;  // of the compared runs
  long step = 0;      // the last one of a run that ended before the playhead
  bool ended = false;
  std::optional<double> time_s{}, loss{}, eval_loss{}, learning_rate{}, gradient_norm{}, tokens_per_second{};
  std::optional<Bytes> memory{};  // of the fullest device
  std::optional<Bytes> moved{};   // between the devices in this step
};
// One for each training run. `at` none: the newest state.
std::vector<RunSnapshot> snapshots_at(const std::vector<ComparedRun>& runs, const views::Playhead& at);
// The samples of a metric over the time of their steps. Empty if the run does not report memory, whose events have the
// times.
views::Series metric_by_time(const views::RunView& run, const views::Series& metric);

Json to_json(const std::vector<RunSnapshot>& snapshots, const std::vector<std::string>& names);

// Compared training runs for parallel coordinates: their settings and results. Thread-safe.

// One per run, also of those without training.
std::vector<views::ParallelRun> parallel_runs(const std::vector<ComparedRun>& runs);

}  // namespace mw::compare
