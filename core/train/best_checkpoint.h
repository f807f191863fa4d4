// SPDX-License-Identifier: Apache-2.0
// The best of a run's evaluations: which checkpoint is kept beside the newest ones, and when the run ends early.
#pragma once
#include <filesystem>
#include <optional>

#include "core/base/json.h"
#include "core/train/evaluate.h"
#include "core/train/settings.h"

namespace mw::train {

// The evaluations of a run so far. Every checkpoint contains it, so that a resumed run decides as one that was never
// stopped.
struct EvaluationHistory {
  std::optional<long> last;      // step of the last complete evaluation; empty in checkpoints of earlier versions
  std::optional<long> answered;  // step of the last complete scoring of answers
  Score answers{};               // of that step
  // Of the evaluations after at least one step; best_step 0: there was none. The value is that of best_metric().
  long best_step = 0;
  double best_value = 0;
  long since_best = 0;  // evaluations after the best one
};
Json to_json(const EvaluationHistory& history);
// Throws JSON for members of the wrong type.
EvaluationHistory read_evaluations(const Json& json, const std::string& file);

// Name of the metric whose values are compared: the held-out loss unless answers decide.
const char* best_metric(KeepBest keep_best);
// Adds an evaluation after at least one step. Returns whether it is the best so far: the first one is, then one with a
// lower loss or a larger share of right answers. NaN never is.
bool add_evaluation(EvaluationHistory& history, KeepBest keep_best, long step, double value);

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

}  // namespace mw::train
