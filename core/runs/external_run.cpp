// SPDX-License-Identifier: Apache-2.0
#include "core/runs/external_run.h"

#include <algorithm>

namespace mw::runs {

std::optional<Event> event_of_line(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos || line[first] != '{') return std::nullopt;
  try {
    return event_from_json(parse_json(line, "line"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ExternalRun::record(const Event& event, const std::string& cursor) {
  last_ = std::max(last_, event.time_s);
  store_.append(run_, event, cursor);
  sink_(event);
}

void ExternalRun::said(const std::string& text, const At& at, const char* level) {
  record({std::max(last_, at.time_s), event::Log{level, text}}, at.cursor);
  on_line_(text);
}

void ExternalRun::line(const std::string& text, const At& at) {
  std::optional<Event> event = event_of_line(text);
  if (!event) return said(text, at);
  if (finished_) return;  // the last word is the last
  if (event->time_s <= 0) event->time_s = std::max(last_, at.time_s);
  if (const auto* f = std::get_if<event::Finished>(&event->body)) {
    last_ = std::max(last_, event->time_s);
    finished_ = *f;
    return;
  }
  if (auto* started = std::get_if<event::Started>(&event->body)) {
    if (!started->info.is_object()) started->info = Json::object();
    if (!started->info.contains("source")) started->info["source"] = "imported";
    started->info.update(about_);
    started->info["run"] = run_;
  }
  if (const auto* metric = std::get_if<event::Metric>(&event->body)) steps_ = std::max(steps_, metric->step);
  record(*event, at.cursor);
}

event::Finished ExternalRun::finish(RunState state, const std::string& error, const At& at, const Json& summary) {
  if (!finished_) {
    finished_.emplace();
    finished_->state = state;
    const auto row = store_.find(run_);  // what an earlier process read, too
    finished_->steps = std::max(steps_, row ? row->steps_done : 0L);
    finished_->seconds = std::max(last_, at.time_s);
    finished_->error = error;
  }
  if (!summary.is_null()) {
    if (!finished_->summary.is_object()) finished_->summary = Json::object();
    finished_->summary.update(summary);
  }
  record({std::max(last_, at.time_s), *finished_}, at.cursor);
  store_.flush();
  return *finished_;
}

}  // namespace mw::runs
