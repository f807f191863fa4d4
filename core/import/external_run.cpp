// SPDX-License-Identifier: Apache-2.0
#include "core/import/external_run.h"

#include <algorithm>
#include <utility>

#include "core/base/process.h"

namespace mw::importing {

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
  if (const auto notice = store_.rescue_notice(last_)) {
    store_.append(run_, *notice);
    sink_(*notice);
  }
}

std::string shortened_line(const std::string& text, std::uint64_t left_out) {
  if (text.size() + left_out <= kMostLogLine) return text;
  const size_t kept = std::min(text.size(), kMostLogLine);
  return text.substr(0, kept) + "... (" + std::to_string(text.size() - kept + left_out) + " bytes left out)";
}

void ExternalRun::log(const std::string& text, const At& at, const char* level) {
  record({std::max(last_, at.time_s), event::Log{level, text}}, at.cursor);
  on_line_(text);
}

void ExternalRun::log_output(const std::string& text, const At& at, const char* level) {
  const bool too_long = text.size() + at.left_out > kMostLogLine;
  if (too_long && !std::exchange(has_noted_shortening_, true))
    log("lines of more than " + std::to_string(kMostLogLine >> 10) + " KiB are shortened in this record",
        {at.time_s, {}}, "warning");
  log(shortened_line(text, at.left_out), at, level);
  for (Event& event : vllm_.take(text)) {
    event.time_s = std::max(last_, at.time_s);
    record(event);
  }
}

void ExternalRun::line(const std::string& text, const At& at) {
  if (at.left_out > 0 && text.starts_with('{'))
    log("a line of " + std::to_string(text.size() + at.left_out) +
            " bytes begins like an event but is too long for one; " + "events of at most " +
            std::to_string(LineSplitter::kMaxLineBytes >> 20) + " MiB are read",
        {at.time_s, {}}, "warning");
  std::optional<Event> event = at.left_out == 0 ? event_of_line(text) : std::nullopt;
  if (!event) return log_output(text, at);
  if (finished_) return;  // no events after Finished
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
  if (auto* log = std::get_if<event::Log>(&event->body)) log->text = shortened_line(log->text);
  if (const auto* metric = std::get_if<event::Metric>(&event->body)) steps_ = std::max(steps_, metric->step);
  record(*event, at.cursor);
}

event::Finished ExternalRun::finish(RunState state, const std::string& error, const At& at, const Json& summary) {
  if (!finished_) {
    finished_.emplace();
    finished_->state = state;
    const auto row = store_.find(run_);  // includes events that an earlier process recorded
    finished_->steps = std::max(steps_, row ? row->steps_done : 0L);
    finished_->seconds = std::max(last_, at.time_s);
    finished_->error = error;
  }
  // The processes of a cancelled run end one after another, and report each other as lost.
  if (state == RunState::cancelled && finished_->state == RunState::failed) finished_->state = state;
  if (!summary.is_null()) {
    if (!finished_->summary.is_object()) finished_->summary = Json::object();
    finished_->summary.update(summary);
  }
  const double time_s = std::max(last_, at.time_s);
  finished_ = store_.finish(run_, time_s, *finished_, at.cursor);
  sink_({time_s, *finished_});
  return *finished_;
}

}  // namespace mw::importing
