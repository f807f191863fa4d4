// SPDX-License-Identifier: Apache-2.0
// The readers of logs that are read as a whole; run_log.h chooses among them.
#pragma once
#include <filesystem>
#include <string_view>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

inline constexpr long kMostStep = 1'000'000'000'000'000;  // larger numbers of a text are no steps

// Throw LOG if the file has another structure.
RunLog read_trainer_state(const std::filesystem::path& file);  // transformers
RunLog read_training_run(const std::filesystem::path& file);   // of the repository of arXiv 2605.25645
RunLog read_wandb(const std::filesystem::path& file);          // offline files of W&B (run-*.wandb)
// The beginnings are those of read_beginning.
bool begins_with_llama_factory_entry(std::string_view beginning);
RunLog read_llama_factory(const std::filesystem::path& file);  // trainer_log.jsonl
bool contains_torchtune_line(std::string_view beginning);
RunLog read_torchtune(const std::filesystem::path& file);  // text of its DiskLogger
bool contains_trainer_output(std::string_view beginning);
RunLog read_trainer_output(const std::filesystem::path& file);  // terminal output of axolotl, Unsloth and TRL
// Files of events, one JSON object per line, as `run --json` prints them.
bool begins_with_event(const std::filesystem::path& file);
RunLog read_event_lines(const std::filesystem::path& file);

}  // namespace mw::formats
