// SPDX-License-Identifier: Apache-2.0
// calibration.json: factors and the rows that they were fitted to, as shipped, and as accepted, restored and removed in
// the user's hardware folder, where the previous file is kept as calibration.json.bak. Errors name the file. Any
// thread.
#pragma once
#include "core/base/json.h"
#include "core/plan/calibration/proposal.h"

namespace mw::plan {

// Throws Error HARDWARE-FILE if the file was written by a newer version, whose meaning is not known.
void require_known_schema(const Json& document, const std::string& file);
// Throws Error CALIBRATION with file, row and key, and the error above.
Calibration read_calibration(const std::filesystem::path& file);
Json to_json(const Calibration& calibration);  // schema, date, source and factors, as read_calibration reads them
Json to_json(const ErrorSummary& summary);
std::string calibration_text(Json document);  // a row of errors on each line

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
