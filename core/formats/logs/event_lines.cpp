// SPDX-License-Identifier: Apache-2.0
#include "core/formats/logs/log_readers.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/input_file.h"
#include "core/base/text.h"

namespace mw::formats {
namespace {

constexpr size_t kDetectBytes = 64 << 10, kMostNotes = 20;

// Empty if the line is not an event.
std::optional<Event> parse_event(std::string_view line, const std::string& place) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] != '{') return std::nullopt;
  try {
    return event_from_json(parse_json(line, place));
  } catch (const Error&) {
    return std::nullopt;
  }
}

void add_event(const Event& e, RunLog& log) {
  if (const auto* started = std::get_if<event::Started>(&e.body)) {
    log.facts = started->info;
    if (!log.facts.is_object()) return;
    if (const auto n = log.facts.find("steps"); n != log.facts.end() && n->is_number_integer())
      log.steps_total = n->get<long>();
    if (const auto name = log.facts.find("name"); name != log.facts.end() && name->is_string())
      log.name = name->get<std::string>();
  } else if (const auto* metric = std::get_if<event::Metric>(&e.body)) {
    log.scalars.push_back({usual_name(metric->name), metric->step, metric->value, 0});
    log.seconds = std::max(log.seconds, e.time_s);
  } else if (const auto* finished = std::get_if<event::Finished>(&e.body)) {
    log.finished = finished->state == RunState::done;
    log.seconds = finished->seconds;
    if (!finished->error.empty()) log.notes.push_back("the run ended with: " + finished->error);
  }
}

}  // namespace

bool begins_with_event(const std::filesystem::path& file) {
  const std::string text = read_beginning(file, kDetectBytes);
  std::string_view left = text;
  if (left.starts_with("\xEF\xBB\xBF")) left.remove_prefix(3);
  return parse_event(take_line(left), file.string()).has_value();
}

RunLog read_event_lines(const std::filesystem::path& file) {
  const std::string text = read_text(file, kMostLog);
  RunLog log;
  log.name = file.stem().string();
  log.tool = "Meshwright events";
  long line = 0, others = 0;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view content = take_line(left);
    ++line;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::optional<Event> event = parse_event(content, file.string());
    if (event) add_event(*event, log);
    if (!event && static_cast<size_t>(++others) <= kMostNotes)
      log.notes.push_back("line " + std::to_string(line) + " is not an event and was skipped");
  }
  if (static_cast<size_t>(others) > kMostNotes)
    log.notes.push_back(std::to_string(others) + " lines in total are not events");
  return log;
}

}  // namespace mw::formats
