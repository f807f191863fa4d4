// SPDX-License-Identifier: Apache-2.0
// The readers behind read_log(), one of a kind of file each.
#pragma once
#include "core/formats/logs/run_log.h"

namespace mw::formats {

inline constexpr std::uint64_t kMostLog = 256ull << 20;  // bytes; as JSON in memory it is several times as much

std::string names_text(const std::set<std::string>& names);  // "loss, lr", at most 60 bytes; run_log.cpp

RunLog read_wandb(const std::filesystem::path& file);
RunLog read_trainer_state(const std::filesystem::path& file);  // json_logs.cpp
RunLog read_training_run(const std::filesystem::path& file);
bool begins_with_event(const std::filesystem::path& file);  // event_lines.cpp
RunLog read_event_lines(const std::filesystem::path& file);

}  // namespace mw::formats
