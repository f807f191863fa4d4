// SPDX-License-Identifier: Apache-2.0
#include "core/compare/compared_snapshots.h"

#include <algorithm>
#include <cmath>

namespace mw::compare {
namespace {

RunSnapshot snapshot_of(size_t column, const views::RunView& run, const views::Playhead& at) {
  RunSnapshot out{.column = column};
  out.ended = (at.step && *at.step > static_cast<double>(run.step())) || (at.time_s && *at.time_s > run.last_time());
  const views::StepSnapshot state = views::step_snapshot(run, out.ended ? views::Playhead{} : at);
  out.step = state.step;
  out.time_s = at.time_s && !out.ended ? at.time_s : views::time_of_step(run, static_cast<double>(state.step));
  out.loss = state.loss;
  out.eval_loss = state.eval_loss;
  out.learning_rate = views::metric_at(run, "train/learning_rate", state.step);
  out.gradient_norm = views::metric_at(run, "train/grad_norm", state.step);
  out.tokens_per_second = views::metric_at(run, "train/tokens_per_second", state.step);
  for (const views::DeviceSnapshot& device : state.devices)
    out.memory = std::max(out.memory.value_or(Bytes()), device.bytes.total());
  if (state.has_traffic) out.moved = Bytes(std::llround(std::min(state.traffic.bytes, 9e18)));
  return out;
}

}  // namespace

std::vector<RunSnapshot> snapshots_at(const std::vector<ComparedRun>& runs, const views::Playhead& at) {
  std::vector<RunSnapshot> out;
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i].training) out.push_back(snapshot_of(i, *runs[i].training, at));
  return out;
}

views::Series metric_by_time(const views::RunView& run, const views::Series& metric) {
  views::Series out;
  for (size_t i = 0; i < metric.size(); ++i)
    if (const auto time = views::time_of_step(run, metric[i].x)) out.append(*time, metric[i].y);
  return out;
}

Json to_json(const std::vector<RunSnapshot>& snapshots, const std::vector<std::string>& names) {
  const auto bytes = [](const std::optional<Bytes>& value) { return value ? Json(value->value) : Json(nullptr); };
  Json out = Json::array();
  for (const RunSnapshot& s : snapshots)
    out.push_back({{"name", names.at(s.column)},
                   {"step", s.step},
                   {"ended", s.ended},
                   {"time_s", or_null(s.time_s)},
                   {"train_loss", or_null(s.loss)},
                   {"eval_loss", or_null(s.eval_loss)},
                   {"learning_rate", or_null(s.learning_rate)},
                   {"grad_norm", or_null(s.gradient_norm)},
                   {"tokens_per_second", or_null(s.tokens_per_second)},
                   {"memory_bytes", bytes(s.memory)},
                   {"moved_bytes", bytes(s.moved)}});
  return out;
}

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
