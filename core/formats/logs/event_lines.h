// SPDX-License-Identifier: Apache-2.0
// Reads files of events, one JSON object per line, as `run --json` prints them.
#pragma once
#include <filesystem>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

bool begins_with_event(const std::filesystem::path& file);
RunLog read_event_lines(const std::filesystem::path& file);

}  // namespace mw::formats
