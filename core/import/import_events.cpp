// SPDX-License-Identifier: Apache-2.0
#include "core/import/import_events.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/base/files.h"
#include "core/base/input_file.h"
#include "core/import/import_results.h"
#include "core/import/watched.h"

namespace mw::importing {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostLine = 16 << 20, kMostEvents = 20'000'000;
constexpr std::uint64_t kMostBytes = 1ull << 30;

[[noreturn]] void refuse(const fs::path& file, const std::string& message, const std::string& place,
                         const std::string& found, const std::string& expected) {
  throw Error({.id = "EVENTS",
               .message = message,
               .file = file.string(),
               .place = place,
               .found = found,
               .expected = expected});
}

// Reads the next line, truncated to `most` bytes; empty at the end of the file.
std::optional<std::string> next_line(std::istream& in, size_t most) {
  std::string line;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n' || line.size() == most) return line;
    line += static_cast<char>(c);
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

std::string text_in(const Json& info, const char* key) {
  return info.contains(key) && info[key].is_string() ? valid_utf8(info[key].get<std::string>()) : std::string();
}

// Sets name, software and document of the record from its Started event.
void take_started(event::Started& started, EventRecord& record) {
  if (!started.info.is_object()) started.info = Json::object();
  Json& info = started.info;
  info["source"] = "imported";
  info.erase("run");  // the id belongs to another store
  if (!record.name.empty()) return;
  record.name = text_in(info, "name");
  record.software = text_in(info, "software");
  if (!record.name.empty() && !record.software.empty() && record.software != "Meshwright")
    record.name += ", " + record.software;  // tells it from a local run of the same experiment
  if (!info.contains("experiment") || !info["experiment"].is_object()) return;
  try {
    record.document = experiment::Experiment::from_json(info["experiment"]);
  } catch (const Error&) {  // from a newer program; the events are still usable
  }
}

}  // namespace

bool is_event_lines(const fs::path& file) {
  std::string beginning = read_beginning(file, kMostLine);
  if (beginning.starts_with("\xEF\xBB\xBF")) beginning.erase(0, 3);
  std::istringstream in(std::move(beginning));
  const auto first = next_line(in, kMostLine);
  const auto event = first ? event_of_line(*first) : std::nullopt;
  return event && std::holds_alternative<event::Started>(event->body);
}

EventRecord read_event_lines(const fs::path& file) {
  std::istringstream in(read_text(file, kMostBytes));
  EventRecord record;
  double last = 0;
  long steps = 0;
  bool ended = false;
  for (auto line = next_line(in, kMostLine); line; line = next_line(in, kMostLine)) {
    if (record.events.size() == kMostEvents)
      refuse(file, "the file has too many events", "", "more than " + std::to_string(kMostEvents),
             "a record of one run");
    auto event = event_of_line(*line);
    if (!event) {
      if (!line->empty()) record.events.push_back({last, event::Log{"info", valid_utf8(shortened_line(*line))}});
      continue;
    }
    if (ended) refuse(file, "the file has events after the end of the run", "", "another run", "one run per file");
    last = event->time_s = std::max(last, event->time_s);  // event times never decrease
    if (auto* started = std::get_if<event::Started>(&event->body)) take_started(*started, record);
    if (const auto* metric = std::get_if<event::Metric>(&event->body))
      ++record.values, steps = std::max(steps, metric->step);
    ended = std::holds_alternative<event::Finished>(event->body);
    record.events.push_back(std::move(*event));
  }
  if (record.values == 0)
    refuse(file, "the file has no measured values", "", "no metric event",
           "what `meshwright run --json` or a recipe's train.py prints");
  if (!ended) {
    event::Finished cut;
    cut.state = RunState::failed;
    cut.steps = steps;
    cut.seconds = last;
    cut.error = "the file ends before the run does";
    record.events.push_back({last, cut});
  }
  if (record.name.empty()) record.name = valid_utf8(file.stem().string());
  if (record.software.empty()) record.software = "event lines";
  return record;
}

store::RunId import_events(store::Store& store, const EventRecord& record) {
  experiment::Experiment document = record.document;
  if (!document.has("name")) document.set_value("name", record.name);
  store::RunId run = store.create(document, record.name);
  const auto lock = store.lock(run);
  for (const Event& event : record.events)
    if (const auto* finished = std::get_if<event::Finished>(&event.body))
      finish_recorded(store, run, event.time_s, *finished);
    else
      store.append(run, event);
  return run;
}

}  // namespace mw::importing
