// SPDX-License-Identifier: Apache-2.0
// Calibrating the planner with the user's own measurements: files of rows and finished runs in, a proposal out, in
// words and numbers for command line and window alike. Writes nothing. Any thread.
#pragma once
#include "core/plan/calibration/user_calibration.h"
#include "core/planning/measured_run.h"

namespace mw::planning {

struct CalibrationRequest {
  std::vector<std::filesystem::path> files;  // rows in the form of resources/hardware/measurements.json
  std::vector<store::RunId> runs;            // finished training runs of this machine
  std::filesystem::path runs_folder;         // the store they are in
  std::filesystem::path published;           // measurements.json of the program: what it holds out stays held out
  std::vector<std::string> names{"matmul"};  // efficiencies to fit
  std::string date;                          // "2026-11-21"
};

struct CalibrationResult {
  std::optional<plan::Proposal> proposal;  // none: nothing to fit
  std::vector<Problem> problems;           // one for each row, file or run that was left out
};

// `catalogue` says which calibration is in force. Throws only cancelled().
CalibrationResult calibrate(const CalibrationRequest& request, const hardware::Catalogue& catalogue,
                            const plan::FitProgress& progress = {}, std::stop_token stop = {});

// Runs of the store that can be calibrated with, newest first.
std::vector<store::RunRow> measured_runs(const std::filesystem::path& runs_folder);
// Step times' names with their help, for choosing.
std::vector<plan::Efficiencies::Named> fittable_efficiencies();
std::string today_utc();

std::string error_text(double error);  // "+12.3 %": predicted against measured, more is slower or larger
std::string summary_text(const plan::ErrorSummary& summary);       // "mean 4.1 %, worst 9.8 % (my-row)"
std::string interval_text(double value, double low, double high);  // "0.62 (0.55 to 0.7)"
// What the held-out rows say, in a sentence or three.
std::string verdict_text(const plan::Proposal& proposal);
std::string calibrated_text(const CalibrationResult& calibrated);  // tables for people
Json calibrated_json(const CalibrationResult& calibrated);

}  // namespace mw::planning
