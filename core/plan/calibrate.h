// SPDX-License-Identifier: Apache-2.0
// Calibration: named efficiencies fitted to measured steps, as factors on their defaults by chip and software stack.
// Kept as a file with date and source; rows held out are predicted before anybody accepts it. Plain values; any thread.
#pragma once
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "core/plan/measurements.h"

namespace mw::plan {

struct Factor {
  Stack stack = Stack::engine;
  std::string chip;  // of the catalogue; empty: of all chips of `vendor` that have none of their own
  hardware::Vendor vendor = hardware::Vendor::tpu;
  std::string name;                 // of Efficiencies::names()
  double value = 1;                 // on the default
  double low = 1, high = 1;         // how far the rows it was fitted to disagree
  std::vector<std::string> rows{};  // that it was fitted to
};

struct Calibration {
  std::string date;    // "2026-11-21"
  std::string source;  // "measurements.json", "run 12 of this machine"
  std::vector<Factor> factors;
};

struct FitOptions {
  std::vector<std::string> names{"matmul"};  // what is fitted, per chip and stack
  double shortest = 0.4, longest = 1.6;      // bounds of a factor; a share never exceeds 1
  double trust = 0.5;  // a factor this far from 1 (in logarithms) costs as much as a row off by 10 %
};

struct Fit {
  Calibration calibration;
  ErrorSummary fitted_before, fitted_after;      // step times of the calibration rows
  ErrorSummary time_before, time_after, memory;  // of the rows held out: what is seen before accepting
};

// Robust least squares (Huber) on log(predicted / measured) of the step times among the calibration rows, group by
// group; chips without rows get the geometric mean of their vendor's with the same stack. Holdout rows are only
// predicted. Throws Error CALIBRATION where there is no row to fit or a name is unknown; cancelled() when stopped.
Fit fit(const std::vector<Measurement>& rows, const FitOptions& options = {}, std::stop_token stop = {});

// Efficiencies of the request times the factors of its chip and stack; origin and source follow.
void apply(const Calibration& calibration, Request& request);

std::vector<Comparison> predict_all(const std::vector<Measurement>& rows, const Calibration& calibration,
                                    std::stop_token stop = {});

// Throws Error CALIBRATION naming file, row and key.
Calibration read_calibration(const std::filesystem::path& file);
void write_calibration(const std::filesystem::path& file, const Fit& fit);

}  // namespace mw::plan
