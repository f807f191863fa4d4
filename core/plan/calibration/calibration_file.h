// SPDX-License-Identifier: Apache-2.0
// Reads calibration.json (factors and the rows that they were fitted to) and makes its JSON.
#pragma once
#include "core/base/json.h"
#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

// Throws Error CALIBRATION with file, row and key.
Calibration read_calibration(const std::filesystem::path& file);
Json to_json(const Calibration& calibration);  // schema, date, source and factors, as read_calibration reads them
Json to_json(const ErrorSummary& summary);
double rounded(double value);  // to four decimals, as files have factors and errors

}  // namespace mw::plan
