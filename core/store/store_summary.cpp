// SPDX-License-Identifier: Apache-2.0
#include "core/store/store_summary.h"

#include "core/experiment/bind.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace mw::store {
namespace {

std::optional<double> finite(double v) {
  return std::isfinite(v) ? std::optional(v) : std::nullopt;
}

struct Apply {
  RunRow& row;

  void operator()(const event::Started& e) {
    row.state = RunState::running;
    row.error.clear();
    if (!e.info.is_object()) return;
    const auto steps = e.info.find("steps");
    if (steps != e.info.end() && steps->is_number_integer()) row.steps_total = steps->get<long>();
    const auto source = e.info.find("source");
    if (source != e.info.end() && source->is_string()) row.source = valid_utf8(source->get_ref<const std::string&>());
  }
  void operator()(const event::Metric& e) {
    if (e.name.starts_with("train/")) row.steps_done = std::max(row.steps_done, e.step);
    if (e.name == "train/loss") row.train_loss = finite(e.value);
    if (e.name == "eval/loss") row.eval_loss = finite(e.value);
    if (e.name == "train/tokens" && e.value >= 0 && e.value < 9e18) row.tokens = static_cast<std::int64_t>(e.value);
  }
  void operator()(const event::Memory& e) { row.peak = std::max({row.peak, e.peak, e.bytes.total()}); }
  void operator()(const event::Point& e) { row.steps_done = std::max(row.steps_done, e.step); }
  void operator()(const event::StateChanged& e) { row.state = e.state; }
  void operator()(const event::Finished& e) {
    row.state = e.state;
    row.steps_done = std::max(row.steps_done, e.steps);
    row.tokens = std::max<std::int64_t>(row.tokens, e.tokens);
    if (std::isfinite(e.seconds)) row.seconds = std::max(row.seconds, e.seconds);
    row.peak = std::max(row.peak, e.peak);
    row.error = valid_utf8(e.error);
  }
  template <class Other>
  void operator()(const Other&) {}  // changes no column
};

std::string folder_name(const std::filesystem::path& path) {
  const auto plain = path.lexically_normal();
  return (plain.has_filename() ? plain.filename() : plain.parent_path().filename()).string();
}

}  // namespace

RunRow row_from(const experiment::Experiment& experiment) {
  RunRow row;
  const experiment::ExperimentConfig config = experiment.valid_values();
  row.model = config.model.id.empty() ? folder_name(config.model.path) : config.model.id;
  if (config.kind != experiment::Kind::train) {
    row.method = config.kind == experiment::Kind::serve ? "sweep" : "size";
    row.source = "measured";  // the Started event may change it
    return row;
  }
  row.method = to_string(config.train.method);
  if (config.train.method == model::TrainMethod::lora) row.method += " r" + std::to_string(config.lora.rank);
  row.source = "measured";
  // With epochs, the number of steps is known only after reading the data; the Started event sets it.
  row.steps_total = config.train.epochs > 0 ? 0 : config.train.rate.steps;
  return row;
}

void apply(RunRow& row, const Event& event) {
  if (std::isfinite(event.time_s)) row.seconds = std::max(row.seconds, event.time_s);
  std::visit(Apply{row}, event.body);
}

EventColumns columns_of(const Event& event) {
  static constexpr const char* kKinds[] = {"started",  "metric", "memory",   "sample", "checkpoint", "log",
                                           "progress", "state",  "finished", "point",  "traffic"};
  static_assert(std::size(kKinds) == std::variant_size_v<decltype(event.body)>);
  EventColumns columns;
  columns.kind = kKinds[event.body.index()];
  std::visit(
      [&columns](const auto& e) {
        if constexpr (requires { e.step; }) columns.step = e.step;
      },
      event.body);
  if (const auto* metric = std::get_if<event::Metric>(&event.body)) {
    columns.name = valid_utf8(metric->name);
    columns.value = finite(metric->value);
  }
  return columns;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, n};
}

std::string today_utc() {
  return now_utc().substr(0, std::string_view("2026-01-31").size());
}

}  // namespace mw::store
