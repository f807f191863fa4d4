// SPDX-License-Identifier: Apache-2.0
// calibration.json in the user's hardware folder: accepted, taken back, removed. What was there before is kept beside
// it as calibration.json.bak. Any thread; errors name the file.
#pragma once
#include "core/plan/calibration/proposal.h"

namespace mw::plan {

std::filesystem::path user_calibration_file(const std::filesystem::path& folder);
// Its content; none where the shipped one is in force.
std::optional<std::string> user_calibration(const std::filesystem::path& folder);

// What accepting writes: the calibration with its rows and errors, held out ones included.
Json to_json(const Proposal& proposal);

// Each writes atomically and returns the content that was there, which restore_calibration() restores exactly.
std::optional<std::string> accept_proposal(const std::filesystem::path& folder, const Proposal& proposal);
std::optional<std::string> remove_user_calibration(const std::filesystem::path& folder);
std::optional<std::string> restore_calibration(const std::filesystem::path& folder,
                                               const std::optional<std::string>& content);

}  // namespace mw::plan
