// SPDX-License-Identifier: Apache-2.0
// Training logs of other programs as scalars by name and step: TensorBoard event files, trainer_state.json of
// transformers, offline files of W&B, trainer_log.jsonl of LLaMA-Factory, text of torchtune's DiskLogger, terminal
// output of axolotl, Unsloth and TRL, training_run.json of the repository of arXiv 2605.25645, and files of events as
// `run --json` prints them. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace mw::formats {

inline constexpr std::uint64_t kMostLog = 256ull << 20;  // bytes of a JSON log; parsed it takes several times as much

struct Scalar {
  std::string name;  // Meshwright's name if known: "train/loss", "eval/loss", "train/learning_rate"
  long step = 0;
  double value = 0;
  double wall_s = 0;  // seconds since the epoch, or since the start of the run; 0: unknown
};

struct RunLog {
  std::string name, tool;               // for display: folder; "TensorBoard", "transformers", "W&B"
  std::vector<Scalar> scalars;          // in file order
  Json facts = Json::object();          // model, settings and machine
  long steps_total = 0;                 // 0: unknown
  double seconds = 0;                   // duration of the run; 0: unknown
  bool finished = false;                // according to the file
  std::vector<std::string> notes;       // damaged or unknown parts that were skipped
  std::vector<std::string> contents{};  // other data in the file: "2 histograms (weights, bias)"
};

enum class LogKind {
  none,
  tensorboard,
  trainer_state,
  wandb,
  training_run,
  events,
  llama_factory,
  torchtune,
  trainer_output
};
LogKind log_kind(const std::filesystem::path& path);  // by name and content; a folder has the kind of its log files

// The files that hold the values: all of TensorBoard, the newest of W&B, the last state of transformers. Empty: none
// yet.
std::vector<std::filesystem::path> log_files(const std::filesystem::path& path);

// Throws LOG if the file has none of these formats or is damaged at its beginning. A damaged end is a note.
RunLog read_log(const std::filesystem::path& path);

// Summary of the scalars with one name.
struct LogSeries {
  std::string name;
  size_t points = 0, finite = 0;  // number of values, and of finite values
  long first_step = 0, last_step = 0;
  double last = 0, least = 0, most = 0;  // of the finite values; `last` is that of the latest step
};
std::vector<LogSeries> summarize_series(const RunLog& log);  // sorted by name

// Maps names of transformers, TRL and TensorBoard to Meshwright's: "loss" -> "train/loss", "eval_loss" -> "eval/loss".
std::string usual_name(const std::string& name);

std::string join_names(const std::set<std::string>& names);  // "loss, lr", at most 60 bytes

}  // namespace mw::formats
