// SPDX-License-Identifier: Apache-2.0
#include "core/compare/parallel_runs.h"

#include <algorithm>
#include <cmath>

namespace mw::compare {
namespace {

std::optional<double> last_value(const views::RunView& run, const std::string& name) {
  const views::MetricSeries* series = run.metric(name);
  return series && !series->raw.empty() ? std::optional(series->raw.back().y) : std::nullopt;
}

std::optional<double> lowest_value(const views::RunView& run, const std::string& name) {
  const views::MetricSeries* series = run.metric(name);
  if (!series) return std::nullopt;
  std::optional<double> lowest;
  for (const double y : series->raw.y())
    if (std::isfinite(y) && (!lowest || y < *lowest)) lowest = y;
  return lowest;
}

std::optional<double> seconds_of(const views::RunView& run) {
  const double seconds = run.finished() ? run.finished()->seconds : run.last_time();
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

std::optional<double> percent(std::optional<double> share) {
  return share ? std::optional(100 * *share) : std::nullopt;
}

}  // namespace

std::vector<views::ParallelRun> parallel_runs(const std::vector<ComparedRun>& runs) {
  static const views::RunView kNone;
  std::vector<views::ParallelRun> out;
  for (const ComparedRun& run : runs) {
    const views::RunView& training = run.training ? *run.training : kNone;
    out.push_back({.settings = store::settings_of(run.experiment),
                   .results = {{"Eval loss, lowest", "nats/token", lowest_value(training, "eval/loss")},
                               {"Train loss, last", "nats/token", last_value(training, "train/loss")},
                               {"Right answers, last", "%", percent(last_value(training, "eval/answers_right"))},
                               {"Time", "s", seconds_of(training)}}});
  }
  return out;
}

}  // namespace mw::compare
