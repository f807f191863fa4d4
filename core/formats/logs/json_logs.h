// SPDX-License-Identifier: Apache-2.0
// Reads trainer_state.json of transformers and training_run.json of the repository of arXiv 2605.25645.
#pragma once
#include <filesystem>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

// Throw LOG if the file has another structure.
RunLog read_trainer_state(const std::filesystem::path& file);
RunLog read_training_run(const std::filesystem::path& file);

}  // namespace mw::formats
