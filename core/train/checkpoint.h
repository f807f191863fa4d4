// SPDX-License-Identifier: Apache-2.0
// Checkpoint folders `checkpoint-<step>`: the PEFT adapter or Hugging Face model for other tools, and
// trainer_state.{safetensors,json} with f32 parameters, AdamW moments and counters, so that a resumed run is
// bit-identical: on the same mesh, with the same threads and in the same arithmetic (engine/runtime/arithmetic.h),
// which the checkpoint names. Tensors are saved unsharded, so a run may resume on another mesh. Folders are written
// atomically.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/json.h"
#include "core/engine/distributed/cluster.h"
#include "core/train/best_checkpoint.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::train {

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

}  // namespace mw::train

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::train::CheckpointChoice>{"best", "last"};
