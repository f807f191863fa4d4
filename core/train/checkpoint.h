// SPDX-License-Identifier: Apache-2.0
// A checkpoint folder `checkpoint-<step>`: the PEFT adapter (or HF model) that other tools load, plus
// trainer_state.{safetensors,json} with the exact f32 parameters, AdamW moments and counters, so that a resumed run
// continues bit for bit. Tensors are whole whatever mesh they were sharded over: a run resumes on another one, too.
// Written beside and renamed: a killed process leaves the old ones whole.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/json.h"
#include "core/engine/distributed/cluster.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::train {

struct Counters {
  long step = 0;                               // optimizer steps done
  std::int64_t tokens = 0;                     // real tokens trained on
  double seconds = 0;                          // run time so far
  long answers_asked = 0, answers_before = 0;  // the base model's score, asked once
};

std::filesystem::path checkpoint_path(const std::filesystem::path& run_folder, long step);
// The whole checkpoint with the highest step, or nothing.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& run_folder);
// Counters alone, without touching the tensors.
Counters read_counters(const std::filesystem::path& checkpoint);

void write_checkpoint(const std::filesystem::path& run_folder, const Counters& counters, const Settings& settings,
                      engine::Cluster& cluster);
// Throws Error when the checkpoint does not belong to these settings (other shapes or names).
Counters restore_checkpoint(const std::filesystem::path& checkpoint, engine::Cluster& cluster);
// Removes all but the newest `keep`.
void prune_checkpoints(const std::filesystem::path& run_folder, long keep);

}  // namespace mw::train
