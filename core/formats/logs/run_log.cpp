// SPDX-License-Identifier: Apache-2.0
#include "core/formats/logs/run_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/logs/log_readers.h"
#include "core/formats/logs/tensorboard.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

constexpr size_t kDetectedLog = 1 << 20;  // trainers print much before their first loss
constexpr const char* kLlamaFactoryLog = "trainer_log.jsonl";

bool is_events(const fs::path& file) {
  return file.filename().string().find("tfevents") != std::string::npos;
}

// Files of a folder that satisfy `wanted`, sorted by name; TensorBoard runs have several.
template <class Wanted>
std::vector<fs::path> files_in(const fs::path& folder, Wanted wanted) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_file(at->path()) && wanted(at->path())) all.push_back(at->path());
  std::sort(all.begin(), all.end());
  return all;
}

bool ends_wandb(const fs::path& file) {
  return file.extension() == ".wandb";
}

// trainer_state.json of the folder, or of its last checkpoint.
fs::path last_state(const fs::path& folder) {
  fs::path best;
  long most = -1;
  if (path_exists(folder / "trainer_state.json")) return folder / "trainer_state.json";
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("checkpoint-") || !path_exists(at->path() / "trainer_state.json")) continue;
    const long step = std::strtol(name.c_str() + 11, nullptr, 10);
    if (step > most) most = step, best = at->path() / "trainer_state.json";
  }
  return best;
}

RunLog read_tensorboard(const std::vector<fs::path>& files) {
  RunLog log;
  log.name = files.front().parent_path().filename().string();
  log.tool = "TensorBoard";
  std::map<std::string, std::set<std::string>> others;
  for (const fs::path& file : files) {
    TensorboardFile events(file);
    for (Scalar& s : events.read_more()) log.scalars.push_back(std::move(s));
    for (const auto& [kind, tags] : events.others()) others[kind].insert(tags.begin(), tags.end());
    log.notes.insert(log.notes.end(), events.notes().begin(), events.notes().end());
  }
  for (const auto& [kind, tags] : others)
    log.contents.push_back(std::to_string(tags.size()) + " " + kind + " (" + join_names(tags) + ")");
  double first = 0, last = 0;
  for (const Scalar& s : log.scalars)
    if (s.wall_s > 0) {
      first = first == 0 ? s.wall_s : std::min(first, s.wall_s);
      last = std::max(last, s.wall_s);
    }
  log.seconds = last - first;
  return log;
}

LogKind kind_of_text(std::string_view beginning) {
  if (begins_with_llama_factory_entry(beginning)) return LogKind::llama_factory;
  if (contains_torchtune_line(beginning)) return LogKind::torchtune;
  return contains_trainer_output(beginning) ? LogKind::trainer_output : LogKind::none;
}

// Whether the folder has a log of LLaMA-Factory; one with a trainer_state.json, too, is read as that of transformers.
bool has_llama_factory_log(const fs::path& folder) {
  return path_exists(folder / kLlamaFactoryLog) &&
         begins_with_llama_factory_entry(read_beginning(folder / kLlamaFactoryLog, kDetectedLog));
}

}  // namespace

std::string join_names(const std::set<std::string>& names) {
  return text_excerpt(joined(names));
}

LogKind log_kind(const fs::path& path) {
  if (is_folder(path)) {
    if (!files_in(path, is_events).empty()) return LogKind::tensorboard;
    if (!files_in(path, ends_wandb).empty()) return LogKind::wandb;
    if (!last_state(path).empty()) return LogKind::trainer_state;
    if (has_llama_factory_log(path)) return LogKind::llama_factory;
    return path_exists(path / "training_run.json") ? LogKind::training_run : LogKind::none;
  }
  if (is_events(path)) return LogKind::tensorboard;
  if (ends_wandb(path)) return LogKind::wandb;
  if (path.filename() == "trainer_state.json") return LogKind::trainer_state;
  if (path.filename() == "training_run.json") return LogKind::training_run;
  return begins_with_event(path) ? LogKind::events : kind_of_text(read_beginning(path, kDetectedLog));
}

std::vector<fs::path> log_files(const fs::path& path) {
  if (!is_folder(path)) return {path};
  switch (log_kind(path)) {
    case LogKind::tensorboard:
      return files_in(path, is_events);
    case LogKind::wandb:
      return {files_in(path, ends_wandb).back()};
    case LogKind::trainer_state:
      return {last_state(path)};
    case LogKind::training_run:
      return {path / "training_run.json"};
    case LogKind::llama_factory:
      return {path / kLlamaFactoryLog};
    case LogKind::events:
    case LogKind::torchtune:
    case LogKind::trainer_output:
    case LogKind::none:
      break;
  }
  return {};
}

RunLog read_log(const fs::path& path) {
  switch (log_kind(path)) {
    case LogKind::tensorboard:
      return read_tensorboard(log_files(path));
    case LogKind::wandb:
      return read_wandb(log_files(path).front());
    case LogKind::trainer_state:
      return read_trainer_state(log_files(path).front());
    case LogKind::training_run:
      return read_training_run(log_files(path).front());
    case LogKind::events:
      return read_event_lines(path);
    case LogKind::llama_factory:
      return read_llama_factory(log_files(path).front());
    case LogKind::torchtune:
      return read_torchtune(path);
    case LogKind::trainer_output:
      return read_trainer_output(path);
    case LogKind::none:
      break;
  }
  throw Error(
      "LOG", "the file is not a known training log",
      {.file = path.string(),
       .expected =
           "TensorBoard event files, trainer_state.json, a .wandb file, training_run.json, trainer_log.jsonl of "
           "LLaMA-Factory, text of torchtune's DiskLogger, output of axolotl, Unsloth or TRL, or a file of events"});
}

std::vector<LogSeries> summarize_series(const RunLog& log) {
  std::map<std::string, LogSeries> all;
  for (const Scalar& s : log.scalars) {
    LogSeries& one =
        all.try_emplace(s.name, LogSeries{.name = s.name, .first_step = s.step, .last_step = s.step}).first->second;
    const bool counted = std::isfinite(s.value);
    one.first_step = std::min(one.first_step, s.step);
    if (counted && (one.finite++ == 0 || s.step >= one.last_step)) one.last = s.value;
    one.last_step = std::max(one.last_step, s.step);
    if (counted) {
      one.least = one.finite == 1 ? s.value : std::min(one.least, s.value);
      one.most = one.finite == 1 ? s.value : std::max(one.most, s.value);
    }
    ++one.points;
  }
  std::vector<LogSeries> list;
  for (auto& [name, one] : all) list.push_back(std::move(one));
  return list;
}

std::string usual_name(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames{
      {{"lr", "learning_rate"}, {"gradient_norm", "grad_norm"}, {"ppl", "perplexity"}}};
  std::string mode = "train/", rest = name;
  for (const std::string_view prefix : {"train/", "eval/", "test/"})
    if (name.starts_with(prefix)) mode = prefix, rest = name.substr(prefix.size());
  if (rest == name && name.starts_with("eval_")) mode = "eval/", rest = name.substr(5);
  if (rest == name && name.find('/') != std::string::npos) return name;  // has a section already
  for (const auto& [theirs, ours] : kNames)
    if (rest == theirs) rest = ours;
  return name == "train_loss" ? "train/mean_loss" : mode + rest;
}

}  // namespace mw::formats
