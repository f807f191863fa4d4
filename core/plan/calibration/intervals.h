// SPDX-License-Identifier: Apache-2.0
// 90 % intervals of predictions by split conformal prediction (Vovk et al. 2005; Lei et al. 2018): the score of a
// calibration row is |log(predicted / measured)|, predicted by a fit to the other rows; the interval is the prediction
// divided and multiplied by the exponential of the scores' quantile of rank ceil(0.9 (n + 1)). Plain values; any
// thread.
#pragma once
#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

constexpr double kIntervalLevel = 0.9;

// Bounds of predictions as factors of at least 1: the measured value is expected in [predicted / f, predicted * f].
// 0: no calibrated interval.
struct IntervalFactors {
  double training = 0, memory = 0, throughput = 0, tpot = 0, ttft = 0;
  std::string source{};  // "90 % intervals: 12 rows of vllm-gpu on h100"
  double of(FigureKind kind) const;
};
// Of the request's stack and chip: from rows of both where they suffice, else from all chips that have rows of their
// stack, else, for a chip without rows, from the errors on chips that were left out of the fit.
IntervalFactors interval_factors(const Calibration& calibration, const Request& request);
// Widens the limits of step time, hours, cost, memory, TTFT and TPOT to the calibrated ones.
void widen_intervals(Plan& plan, const Request& request, const IntervalFactors& factors);

// Fits the factors of all rows with use = calibration; held-out rows do not matter. `calibration`: fitted to `rows`.
std::vector<ConformalFactor> conformal_factors(const std::vector<Measurement>& rows, const Calibration& calibration,
                                               const FitOptions& options = {});
// The smallest score that at least `level` of new scores stay below, if they are exchangeable with `scores`; infinity
// if there are too few.
double conformal_quantile(std::vector<double> scores, double level);

}  // namespace mw::plan
