// SPDX-License-Identifier: Apache-2.0
// Accepts, restores and removes calibration.json in the user's hardware folder. Keeps the previous file as
// calibration.json.bak. Errors name the file. Any thread.
#pragma once
#include "core/base/json.h"
#include "core/plan/calibration/proposal.h"

namespace mw::plan {

std::filesystem::path user_calibration_file(const std::filesystem::path& folder);
// The content of the file; none if the shipped calibration is used.
std::optional<std::string> user_calibration(const std::filesystem::path& folder);

// The document that accept_proposal() writes: the calibration with all rows and errors.
Json to_json(const Proposal& proposal);

// Each writes atomically and returns the previous content, which restore_calibration() restores exactly. Throws Error
// CALIBRATION if there is no configuration folder.
std::optional<std::string> accept_proposal(const std::filesystem::path& folder, const Proposal& proposal);
std::optional<std::string> remove_user_calibration(const std::filesystem::path& folder);
std::optional<std::string> restore_calibration(const std::filesystem::path& folder,
                                               const std::optional<std::string>& content);

}  // namespace mw::plan
