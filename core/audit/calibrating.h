// SPDX-License-Identifier: Apache-2.0
// Calibrates the planner with the user's measurements: reads measurement files and finished runs and returns a
// proposal. Writes no files. Thread-safe.
#pragma once
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/calibration/plan_context.h"
#include "core/store/store.h"

namespace mw::audit {

struct CalibrationRequest {
  std::vector<std::filesystem::path> files;  // measurements in the format of resources/hardware/measurements.json
  std::vector<store::RunId> runs;            // trainings of this machine: only their error is shown
  std::filesystem::path runs_folder;         // store of `runs`
  std::filesystem::path published;           // shipped measurements.json; its held-out rows stay held out
  // Efficiencies to fit, of training and of servers; empty: the defaults of plan::FitOptions.
  std::vector<std::string> names{};
  std::string date;  // "2026-11-21"
};

struct CalibrationResult {
  std::optional<plan::Proposal> proposal;  // empty if there is nothing to fit
  std::vector<Problem> problems;           // one per rejected row, file or run
};

// `catalogue` contains the current calibration. Reports errors as problems; throws only cancelled().
CalibrationResult calibrate(const CalibrationRequest& request, const plan::PlanContext& context,
                            const plan::FitProgress& progress = {}, std::stop_token stop = {});

// Returns the median real tokens per second over all steps but the first, with the planner's request for the run's
// experiment and rows as before the run. Throws RUN-UNKNOWN, or CALIBRATION for a run that is not a training run, has
// failed or has fewer than three steps.
plan::Measurement measured_run(const store::Store& store, const store::RunId& run, const plan::PlanContext& context);
// Returns the efficiencies of the step time model that can be fitted, with their help texts.
std::vector<plan::Efficiencies::Named> fittable_efficiencies();

std::string error_text(double error);  // "+12.3 %": prediction relative to measurement; + is too slow or too large
std::string summary_text(const plan::ErrorSummary& summary);       // "mean 4.1 %, worst 9.8 % (my-row)"
std::string interval_text(double value, double low, double high);  // "0.62 (0.55 to 0.7)"
// Describes the errors on the held-out rows in one to three sentences.
std::string verdict_text(const plan::Proposal& proposal);
std::string calibrated_text(const CalibrationResult& calibrated);  // text tables
Json calibrated_json(const CalibrationResult& calibrated);

}  // namespace mw::audit
