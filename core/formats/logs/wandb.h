// SPDX-License-Identifier: Apache-2.0
// Reads offline files of W&B (run-*.wandb).
#pragma once
#include <filesystem>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

// Throws LOG if the file is not an offline file of W&B.
RunLog read_wandb(const std::filesystem::path& file);

}  // namespace mw::formats
