// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/formats/logs/log_readers.h"

namespace mw::formats {
namespace {

SortedJson read(const std::filesystem::path& file) {
  return parse_sorted_json(without_python_numbers(read_file(file, kMostLog)), file.string());
}

[[noreturn]] void fail(const std::filesystem::path& file, const char* message, const char* expected) {
  throw Error("LOG", message, {.file = file.string(), .expected = expected});
}

double number(const SortedJson& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && at != object.end() && at->is_number() ? at->get<double>() : 0;
}

long whole(double value) {
  return std::isfinite(value) && std::abs(value) < 9e15 ? static_cast<long>(value) : 0;
}

void add_log_entry(const SortedJson& entry, RunLog& log) {
  if (!entry.is_object()) return;
  const long step = whole(number(entry, "step"));
  for (const auto& [key, value] : entry.items()) {
    if (key == "train_runtime" && value.is_number()) log.seconds = value.get<double>(), log.finished = true;
    if (key == "step" || !value.is_number()) continue;
    log.scalars.push_back({usual_name(key), step, value.get<double>(), 0});
  }
}

// {"loss": [...], "loss_mean": ...}: a list has one value per step, starting with step 1.
void add_lists(const SortedJson& object, const std::string& prefix, RunLog& log) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_array()) continue;
    long step = 0;
    for (const SortedJson& one : value) {
      ++step;
      if (one.is_number()) log.scalars.push_back({prefix + key, step, one.get<double>(), 0});
    }
  }
}

}  // namespace

RunLog read_trainer_state(const std::filesystem::path& file) {
  const SortedJson json = read(file);
  const auto history = json.is_object() ? json.find("log_history") : json.end();
  if (!json.is_object() || history == json.end() || !history->is_array())
    fail(file, "the file is not a trainer_state.json of transformers", "log_history: a list");
  RunLog log;
  log.name = file.parent_path().filename().string();
  log.tool = "transformers";
  log.steps_total = whole(number(json, "max_steps"));
  for (const SortedJson& entry : *history) add_log_entry(entry, log);
  for (const char* key : {"global_step", "epoch", "num_train_epochs", "train_batch_size", "total_flos",
                          "num_input_tokens_seen", "best_metric"})
    if (const auto at = json.find(key); at != json.end() && at->is_number()) log.facts[key] = at->get<double>();
  return log;
}

RunLog read_training_run(const std::filesystem::path& file) {
  const SortedJson json = read(file);
  if (!json.is_object() || !json.contains("training") || !json.contains("hardware"))
    fail(file, "the file is not a training_run.json", "training and hardware: objects");
  RunLog log;
  log.name = file.parent_path().filename().string();
  log.tool = "training_run.json";
  add_lists(json["training"], "train/", log);
  if (json.contains("eval")) add_lists(json["eval"], "eval/", log);
  log.seconds = number(json, "wall_time_seconds");
  log.finished = json.value("is_final", SortedJson(false)) == true;
  for (const char* key : {"config", "hardware", "model_info"})
    if (const auto at = json.find(key); at != json.end())
      log.facts[key] = Json::parse(at->dump(-1, ' ', false, SortedJson::error_handler_t::replace));
  return log;
}

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
