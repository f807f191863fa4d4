// SPDX-License-Identifier: Apache-2.0
// Calibration: named efficiencies fitted to measured steps, as factors on their defaults by chip and software stack.
// Kept as a file with date and source; rows held out are predicted before anybody accepts it. Plain values; any thread.
#pragma once
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/plan/calibration/measurements.h"

namespace mw::plan {

enum class CalibrationAuthor { program, user };  // shipped, or accepted by whoever uses the program
struct CalibrationBasis {
  std::string date;    // "2026-11-21"
  std::string source;  // "measurements.json", "run-12"
  CalibrationAuthor by = CalibrationAuthor::program;
};
std::string to_text(const CalibrationBasis& basis);  // "calibrated by you, 2026-11-21, steps.json"

struct CalibrationFactor {
  Stack stack = Stack::engine;
  std::string chip;  // of the catalogue; empty: of all chips of `vendor` that have none of their own
  hardware::Vendor vendor = hardware::Vendor::tpu;
  std::string name;                         // of Efficiencies::names()
  double value = 1;                         // on the default
  double low = 1, high = 1;                 // how far the rows it was fitted to disagree
  std::vector<std::string> rows{};          // that it was fitted to
  std::optional<CalibrationBasis> basis{};  // where it was kept from another calibration; none: that of the whole
};

struct Calibration {
  CalibrationBasis basis;
  std::vector<CalibrationFactor> factors;
};

struct FitOptions {
  std::vector<std::string> names{"matmul"};  // what is fitted, per chip and stack
  double shortest = 0.4, longest = 1.6;      // bounds of a factor; wider on this machine, whose peaks are guesses
  double trust = 0.5;  // a factor this far from 1 (in logarithms) costs as much as a row off by 10 %
  // Of servers, fitted to their output rates and times per token: times to the first token are only ever predicted.
  std::vector<std::string> serving{"matmul", "memory", "kv_reads", "sequence_s"};
};

struct CalibrationFit {
  Calibration calibration;
  ErrorSummary fitted_before, fitted_after;                 // step times of the calibration rows
  ErrorSummary time_before, time_after, memory;             // of the rows held out: what is seen before accepting
  ErrorSummary served_fitted, served_before, served_after;  // of servers: fitted to; held out before and after
};

// Robust least squares (Huber) on log(predicted / measured) of the step times among the calibration rows, group by
// group; chips without rows get the geometric mean of their vendor's with the same stack. Holdout rows are only
// predicted. Throws Error CALIBRATION where there is no row to fit or a name is unknown; cancelled() when stopped.
CalibrationFit fit(const std::vector<Measurement>& rows, const FitOptions& options = {}, std::stop_token stop = {});

// The parts of fit(): factors of the chips and stacks that have rows, nothing else.
std::vector<CalibrationFactor> fit_factors(const std::vector<Measurement>& rows, const FitOptions& options,
                                           std::stop_token stop = {});
// The other chips of a vendor and stack take the geometric mean of those that have factors; older means are dropped.
std::vector<CalibrationFactor> with_means(std::vector<CalibrationFactor> factors);
// A row that factors are fitted to: counted, marked so, and of a kind that speaks for efficiencies.
bool is_fitted(const Measurement& row);
// Names that a measured step time can speak for.
bool can_fit(std::string_view name);
// At a bound of `options`, or at the whole of the peak: the rows would have it further.
bool at_limit(const CalibrationFactor& factor, const Efficiency& before, const FitOptions& options);

// Efficiencies of the request times the factors of its chip and stack; origin and source follow.
void apply(const Calibration& calibration, Request& request);

std::vector<Comparison> predict_all(const std::vector<Measurement>& rows, const Calibration& calibration,
                                    std::stop_token stop = {});

}  // namespace mw::plan
