// SPDX-License-Identifier: Apache-2.0
// Checkpoint folders `checkpoint-<step>`: the PEFT adapter or Hugging Face model for other tools, and
// trainer_state.{safetensors,json} with f32 parameters, AdamW moments and counters, so that a resumed run is
// bit-identical: on the same mesh, with the same threads and in the same arithmetic (engine/runtime/arithmetic.h),
// which the checkpoint names. Tensors are saved unsharded, so a run may resume on another mesh. Folders are written
// atomically. The state also holds what serving and resuming must know: the evaluations so far, which decide the best
// checkpoint and an early end, and the chat template of training.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/json.h"
#include "core/data/tokenizer/chat.h"
#include "core/train/evaluate.h"

namespace mw::engine {
class Cluster;
}

namespace mw::train {

// The evaluations of a run so far. Every checkpoint contains it, so that a resumed run decides as one that was never
// stopped.
struct EvaluationHistory {
  std::optional<long> last;      // step of the last complete evaluation; empty in checkpoints of earlier versions
  std::optional<long> answered;  // step of the last complete scoring of answers
  Score answers{};               // of that step
  // The best evaluation after at least one step; best_step 0: there was none. best_value is that of best_metric().
  long best_step = 0;
  double best_value = 0;
  long since_best = 0;  // evaluations after the best one
};
Json to_json(const EvaluationHistory& history);
// Throws JSON for members of the wrong type.
EvaluationHistory read_evaluations(const Json& json, const std::string& file);

// Name of the metric whose values are compared: the held-out loss unless answers decide.
const char* best_metric(options::KeepBest keep_best);
// Adds an evaluation after at least one step. Returns whether it is the best so far: the first one is, then one with a
// lower loss or a larger share of right answers. NaN never is.
bool add_evaluation(EvaluationHistory& history, options::KeepBest keep_best, long step, double value);

// best_checkpoint.json in the folder of a run.
struct BestCheckpoint {
  long step = 0;
  std::string metric;
  double value = 0;
};
void write_best_checkpoint(const std::filesystem::path& run_folder, const BestCheckpoint& best);
void remove_best_checkpoint(const std::filesystem::path& run_folder);  // the file, not the checkpoint
// Empty if the file is missing or malformed.
std::optional<BestCheckpoint> read_best_checkpoint(const std::filesystem::path& run_folder);

struct TrainingCounters {
  long step = 0;            // completed optimizer steps
  std::int64_t tokens = 0;  // tokens trained on, without padding
  double seconds = 0;       // run time
  std::string
      arithmetic{};    // of products, an engine::Arithmetic or one of a later version; empty: not named, as by 1.0
  int threads = 0;     // 0: likewise
  std::string mesh{};  // empty: likewise
  long answers_asked = 0, answers_before = 0;  // score of the base model
  EvaluationHistory evaluations{};
};

std::filesystem::path checkpoint_path(const std::filesystem::path& run_folder, long step);
// The complete checkpoint with the highest step, or empty.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& run_folder);
// Reads only the counters.
TrainingCounters read_counters(const std::filesystem::path& checkpoint);

void write_checkpoint(const std::filesystem::path& run_folder, const TrainingCounters& counters,
                      const Settings& settings, engine::Cluster& cluster);
// Throws CHECKPOINT if names or sizes of the tensors do not match the cluster.
TrainingCounters restore_checkpoint(const std::filesystem::path& checkpoint, engine::Cluster& cluster);
// Removes all checkpoints except the newest `keep` and that of step `best`, if there is one.
void prune_checkpoints(const std::filesystem::path& run_folder, long keep, std::optional<long> best = {});

// The checkpoint that best_checkpoint.json names, while its folder exists, or the latest; empty if there is none.
enum class CheckpointChoice { best, last };
std::optional<std::filesystem::path> chosen_checkpoint(const std::filesystem::path& run_folder,
                                                       CheckpointChoice choice);

// {name, sha256, rendered}: the built-in template or the model that has published a folder's; the hash of a folder's
// text; that of a short conversation rendered with it.
Json template_record(const data::ChatTemplate& chat);
// A sentence if `folder` is a checkpoint of Meshwright whose conversations were rendered in another way than `used`
// does; empty if they were not, or if it does not say.
std::string template_warning(const std::filesystem::path& folder, const data::ChatTemplate& used);

}  // namespace mw::train

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::train::CheckpointChoice>{"best", "last"};
