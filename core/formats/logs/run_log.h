// SPDX-License-Identifier: Apache-2.0
// What other programs write while they train, as scalars by name and step: TensorBoard event files, trainer_state.json
// of transformers, offline files of W&B, the training_run.json of arXiv 2605.25645's repository,
// and lines of this program's events (`run --json`) in a file. Nothing in a file is trusted. Any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace mw::formats {

struct Scalar {
  std::string name;  // this program's where there is one: "train/loss", "eval/loss", "train/learning_rate"
  long step = 0;
  double value = 0;
  double wall_s = 0;  // seconds since the epoch; 0: not said
};

struct RunLog {
  std::string name, tool;               // for people: folder; "TensorBoard", "transformers", "W&B"
  std::vector<Scalar> scalars;          // as they were written
  Json facts = Json::object();          // what the file says of model, settings and machine
  long steps_total = 0;                 // 0: not said
  double seconds = 0;                   // of the run; 0: not said
  bool finished = false;                // the file says so
  std::vector<std::string> notes;       // what could not be read, and was left out
  std::vector<std::string> contents{};  // what the file holds besides scalars: "2 histograms (weights, bias)"
};

enum class LogKind { none, tensorboard, trainer_state, wandb, training_run, events };
std::string_view to_string(LogKind kind);
LogKind log_kind(const std::filesystem::path& path);  // by name and content; of a folder: what lies in it

// Throws Error LOG for what is none of these or is damaged at its beginning; a damaged end is a note.
RunLog read_log(const std::filesystem::path& path);

// What a log says of one name, over all of its steps; by name.
struct LogSeries {
  std::string name;
  size_t points = 0, finite = 0;  // values; those that are numbers
  long first_step = 0, last_step = 0;
  double last = 0, least = 0, most = 0;  // of the finite ones; last: of the latest step
};
std::vector<LogSeries> series_of(const RunLog& log);

// HF's and TRL's names, TensorBoard tags: "loss" -> "train/loss", "eval_loss" -> "eval/loss".
std::string usual_name(const std::string& name);

// A TensorBoard file that grows: what was added since the last call, whole records only. One thread.
class TensorboardFile {
 public:
  explicit TensorboardFile(std::filesystem::path file) : file_(std::move(file)) {}
  std::vector<Scalar> read_more();
  const std::vector<std::string>& notes() const { return notes_; }
  // Tags that are no scalars, by kind: "histograms", "images", "text" ...
  const std::map<std::string, std::set<std::string>>& others() const { return others_; }
  bool broken() const { return broken_; }  // a length's checksum was wrong: nothing after it can be read

 private:
  std::filesystem::path file_;
  std::uint64_t offset_ = 0;
  bool broken_ = false;
  std::vector<std::string> notes_, scalar_tags_;  // tags that said they are scalars
  std::map<std::string, std::set<std::string>> others_;
};

}  // namespace mw::formats
