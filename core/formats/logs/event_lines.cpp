// SPDX-License-Identifier: Apache-2.0
// Lines of this program's events, as `run --json` and other programs print them, kept in a file.
#include <optional>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/input_file.h"
#include "core/formats/logs/readers.h"

namespace mw::formats {
namespace {

constexpr size_t kLookedAt = 64 << 10, kMostNotes = 20;

// Nothing where the line is no event.
std::optional<Event> event_of(std::string_view line, const std::string& place) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] != '{') return std::nullopt;
  try {
    return event_from_json(parse_json(line, place));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

void take(const Event& e, RunLog& log) {
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
    if (!finished->error.empty()) log.notes.push_back("it ended with: " + finished->error);
  }
}

}  // namespace

bool begins_with_event(const std::filesystem::path& file) {
  const std::string text = read_beginning(file, kLookedAt);
  std::string_view left = text;
  if (left.starts_with("\xEF\xBB\xBF")) left.remove_prefix(3);
  return event_of(take_line(left), file.string()).has_value();
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
    if (content.find_first_not_of(" \t\r") == content.npos) continue;
    const std::optional<Event> event = event_of(content, file.string());
    if (event) take(*event, log);
    if (!event && static_cast<size_t>(++others) <= kMostNotes)
      log.notes.push_back("line " + std::to_string(line) + " is no event and was left out");
  }
  if (static_cast<size_t>(others) > kMostNotes)
    log.notes.push_back(std::to_string(others) + " lines in all are no events");
  return log;
}

}  // namespace mw::formats
