// SPDX-License-Identifier: Apache-2.0
// Fits named efficiencies to measured steps. A calibration holds factors on their default values by chip and software
// stack, with date and source. Plain values; any thread.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/plan/calibration/measurements.h"

namespace mw::plan {

enum class CalibrationAuthor { program, user };  // shipped with the program, or accepted by the user
struct CalibrationBasis {
  std::string date;    // "2026-11-21"
  std::string source;  // "measurements.json", "run-12"
  CalibrationAuthor by = CalibrationAuthor::program;
};
std::string to_text(const CalibrationBasis& basis);  // "calibrated by you, 2026-11-21, steps.json"

struct CalibrationFactor {
  model::Stack stack = model::Stack::engine;
  std::string chip;  // id in the catalogue; empty: chips of `vendor` and `maker` without a factor of their own
  hardware::Vendor vendor = hardware::Vendor::tpu;
  std::string name;  // of Efficiencies::names()
  // Times the default; of a share that is 0 by default (overlap_sums): of its complement, so that 0.7 makes it 0.3.
  double value = 1;
  double low = 1, high = 1;                 // interval from the residual of the fitted rows
  std::vector<std::string> rows{};          // that it was fitted to
  std::optional<CalibrationBasis> basis{};  // if it comes from another calibration; none: that of the whole file
  std::string maker{};                      // of the chip; empty with an empty chip: all makers
};

// Limits of a prediction as factors of at least 1: the measured value is expected in [predicted / below,
// predicted * above]. 0: no calibrated interval.
struct LimitFactors {
  double below = 0, above = 0;
  bool is_calibrated() const { return below >= 1 && above >= 1; }
  // The limits of the reciprocal figure: tokens per second instead of seconds per token.
  LimitFactors inverse() const { return {above, below}; }
};

// The size of the work of a row or plan. Predictions of work of similar size have similar errors.
struct WorkSize {
  double devices = 1, slices = 1, parameters = 1;
  double tokens = 1, answer = 1;  // of a row or a prompt; of the answer to a prompt
  double users = 1;               // of a server at the same time
};
// The size of a training or of serving. `users`: the users of a closed loop; 0: as many as the server admits.
WorkSize work_size(const Request& request, int users = 0);

// The error of the prediction of a published row.
struct RowError {
  FigureKind kind = FigureKind::training;
  model::Stack stack = model::Stack::engine;
  std::string chip{}, source{};
  double log_ratio = 0;  // log(measured / predicted) of time or bytes; of an output rate, that of its time per token
  WorkSize size{};
  std::string run{};  // of which the row is one figure: rows of one run are left out together
  MeasurementUse use = MeasurementUse::holdout;
};

// How many spreads of the errors on similar work a 90 % interval reaches; see intervals.h.
struct SpreadScore {
  FigureKind kind = FigureKind::training;
  double spreads = 0;
  int rows = 0;  // held-out rows that it was taken from
};

// The limits of 90 % intervals of one kind of figure; see intervals.h.
struct ConformalFactor {
  // The held-out rows behind it: of one stack and chip (older files only), of all chips of one stack, of
  // everything.
  enum class Evidence { own, stack, all };
  FigureKind kind = FigureKind::training;
  Evidence evidence = Evidence::all;
  model::Stack stack = model::Stack::engine;  // not of Evidence::all
  std::string chip{};                         // of Evidence::own
  LimitFactors limits{1, 1};
  int rows = 0;  // scores that they were taken from
};

struct Calibration {
  CalibrationBasis basis;
  std::vector<CalibrationFactor> factors;
  std::vector<ConformalFactor> intervals{};
  std::vector<RowError> errors{};  // of stacks and chips with enough rows for intervals of their own
  std::vector<SpreadScore> scores{};
};

// The figure of a row of a server by simulation, in the row's unit, with the efficiencies of the row's request.
using SimulatedFigure = std::function<double(const Measurement&)>;

struct FitOptions {
  std::vector<std::string> names{"matmul"};  // efficiencies to fit, per chip and stack
  double shortest = 0.4, longest = 1.6;      // bounds of a factor
  double trust = 0.5;  // regularisation: a factor with this logarithm costs as much as a row that is off by 10 %
  // Efficiencies of servers, fitted to output rates, times per token and single users' times to first token.
  std::vector<std::string> serving{"matmul", "fp8", "memory", "kv_reads", "triton_reads", "layer_s", "sequence_s"};
  // Without it, rows of servers are fitted to their steady state, which knows neither the first requests of a run nor
  // its last ones. With it, the steady state is corrected by its ratio to the simulation, and times to first token of
  // closed loops are fitted, too.
  SimulatedFigure simulated{};
};

// The options of the shipped calibration, whose rows of several slices and of experts tell more efficiencies apart.
FitOptions shipped_fit_options();

// Fits by robust least squares (Huber) on log(predicted / measured) of the step times of calibration rows, separately
// for each chip and stack; empty if there is no such row. An efficiency that no row of a chip and stack depends on gets
// no factor. Held-out rows do not matter. Throws Error CALIBRATION for an unknown name, and cancelled() when stopped.
std::vector<CalibrationFactor> fit_factors(const std::vector<Measurement>& rows, const FitOptions& options = {},
                                           std::stop_token stop = {});
// Replaces the factors for other chips of a stack by geometric means of the chips that have factors, each with the
// weight of the rows behind its factor: one mean for each vendor, and one for each maker where a vendor has several.
// That of fp8 holds for the makers whose chips were measured only, because their kernels differ more than others.
std::vector<CalibrationFactor> with_means(std::vector<CalibrationFactor> factors);
// Whether factors are fitted to this row: it is counted, marked for calibration, and measures a speed or the time to
// first token of a single user, which is a prefill without a queue.
bool is_fitted(const Measurement& row);
// Whether measured step times determine this efficiency.
bool can_fit(std::string_view name);
// Whether a bound of `options` or the peak limits the factor, so that the rows suggest a more extreme value.
bool at_limit(const CalibrationFactor& factor, const Efficiency& before, const FitOptions& options);

// Multiplies the request's efficiencies by the factors of its chip and stack and updates their origin and source.
void apply(const Calibration& calibration, Request& request);

std::vector<RowPrediction> predict_all(const std::vector<Measurement>& rows, const Calibration& calibration,
                                       std::stop_token stop = {});

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::plan::ConformalFactor::Evidence>{"own", "stack", "all"};
