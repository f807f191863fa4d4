// SPDX-License-Identifier: Apache-2.0
// trainer_log.jsonl of LLaMA-Factory: one object per log step, with the time since the start ("0:01:23"). Older
// versions write learning_rate and a throughput as text, newer ones lr and a number.

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/logs/log_readers.h"

namespace mw::formats {
namespace {

constexpr size_t kFirstLineBytes = 64 << 10, kMostSkippedLines = 20;
constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

// Empty if the line is not an entry.
Json entry_of(std::string_view line, const std::string& file) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] != '{') return {};
  try {
    Json entry = parse_json(without_python_numbers(line), file);
    const auto is_whole = [&](const char* key) {
      const Json* value = find_member(entry, key);
      return value && value->is_number_integer() && *value >= 0 && *value <= kMostStep;
    };
    return is_whole("current_steps") && is_whole("total_steps") ? entry : Json();
  } catch (const Error&) {
    return {};
  }
}

// "0:01:23" or "1 day, 0:01:23" in seconds; 0 if it is neither.
double seconds_of(std::string_view text) {
  double days = 0;
  if (const size_t comma = text.find(", "); comma != std::string_view::npos) {
    days = parse_number<double>(text.substr(0, text.find(' '))).value_or(0);
    text.remove_prefix(comma + 2);
  }
  double seconds = 0;
  for (int part = 0; part < 3; ++part) {
    const size_t colon = std::min(text.find(':'), text.size());
    const auto value = parse_number<double>(text.substr(0, colon));
    if (!value || !(*value >= 0) || (colon == text.size()) != (part == 2)) return 0;
    seconds = seconds * 60 + *value;
    text.remove_prefix(std::min(colon + 1, text.size()));
  }
  return days * 86400 + seconds;
}

std::optional<double> entry_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? parse_number<double>(value.get<std::string>()) : std::nullopt;
}

void add_factory_entry(const Json& entry, RunLog& log) {
  const long step = entry["current_steps"].get<long>();
  log.steps_total = std::max(log.steps_total, entry["total_steps"].get<long>());
  log.finished = step >= log.steps_total && step > 0;
  double elapsed = 0;
  if (const Json* text = find_member(entry, "elapsed_time"); text && text->is_string())
    elapsed = seconds_of(text->get<std::string>());
  log.seconds = std::max(log.seconds, elapsed);
  for (const auto& [key, value] : entry.items()) {
    const std::optional<double> number = entry_number(value);
    if (!number || key == "current_steps" || key == "total_steps" || key == "percentage") continue;
    const bool rate = key == "throughput", memory = key == "vram_allocated" || key == "vram_reserved";
    if ((rate || key == "total_tokens") && *number == 0) continue;  // not counted by this run
    log.scalars.push_back({rate     ? "train/tokens_per_second"
                           : memory ? "train/" + key + "_bytes"
                                    : usual_name(key),
                           step, memory ? *number * kBytesPerGib : *number, elapsed});
  }
}

}  // namespace

bool begins_with_llama_factory_entry(std::string_view beginning) {
  std::string_view left = beginning.substr(0, kFirstLineBytes);
  return !entry_of(take_line(left), "").empty();
}

RunLog read_llama_factory(const std::filesystem::path& file) {
  const std::string text = read_text(file, kMostLog);
  RunLog log;
  log.name = file.parent_path().filename().string();
  if (log.name.empty()) log.name = file.stem().string();
  log.tool = "LLaMA-Factory";
  long line = 0;
  size_t others = 0;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view content = take_line(left);
    ++line;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json entry = entry_of(content, file.string());
    if (!entry.empty())
      add_factory_entry(entry, log);
    else if (++others <= kMostSkippedLines)
      log.notes.push_back("line " + std::to_string(line) + " is no log entry and was skipped");
  }
  if (others > kMostSkippedLines) log.notes.push_back(std::to_string(others) + " lines in total are no log entries");
  return log;
}

}  // namespace mw::formats
