// SPDX-License-Identifier: Apache-2.0
// The readers of logs that are read as a whole; run_log.h chooses among them.
#pragma once
#include <filesystem>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

// Throw LOG if the file has another structure.
RunLog read_trainer_state(const std::filesystem::path& file);  // transformers
RunLog read_training_run(const std::filesystem::path& file);   // of the repository of arXiv 2605.25645
RunLog read_wandb(const std::filesystem::path& file);          // offline files of W&B (run-*.wandb)
// Files of events, one JSON object per line, as `run --json` prints them.
bool begins_with_event(const std::filesystem::path& file);
RunLog read_event_lines(const std::filesystem::path& file);

}  // namespace mw::formats
