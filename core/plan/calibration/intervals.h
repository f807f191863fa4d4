// SPDX-License-Identifier: Apache-2.0
// 90 % intervals of predictions from the errors log(measured / predicted) on published rows that no factor was fitted
// to. Errors are skewed, so that each side has a limit of its own: the prediction times the exponential of the errors'
// 5 and 95 % quantile, or, where the rows do not suffice for both, of the 90 % quantile of their absolute values. Every
// publication has the same weight, because its rows resemble each other more than other work (conformal prediction for
// hierarchical data, arXiv 2306.06342, without the correction for few groups). An interval always contains its
// prediction. Plain values; any thread.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

constexpr double kIntervalLevel = 0.9;

struct IntervalFactors {
  std::array<LimitFactors, kEnumNames<FigureKind>.size()> limits{};  // by FigureKind
  std::string source{};  // "90 % intervals: errors on 12 held-out rows of vllm-gpu"
  LimitFactors& of(FigureKind kind) { return limits[static_cast<size_t>(kind)]; }
  const LimitFactors& of(FigureKind kind) const { return limits[static_cast<size_t>(kind)]; }
};
// From rows of the stack and chip where they suffice; else, for a chip with factors of its own, from all rows of the
// stack; else from all rows.
IntervalFactors interval_factors(const Calibration& calibration, Stack stack, const std::string& chip);
// Widens the limits of step time, hours, cost, memory, TTFT and TPOT to the calibrated ones.
void widen_intervals(Plan& plan, const Request& request, const IntervalFactors& factors);

// The error of the prediction of a row that no factor was fitted to.
struct RowError {
  FigureKind kind = FigureKind::training;
  Stack stack = Stack::engine;
  std::string chip{}, source{};
  double log_ratio = 0;  // log(measured / predicted) of time or bytes; of an output rate, that of its time per token
};
// One paper, repository or benchmark: "arXiv 2605.25645" of "arXiv 2605.25645 v3, serving table".
std::string publication_of(const std::string& source);
// Without the rows of the publication `left_out`, to test intervals on rows that do not shape them.
std::vector<ConformalFactor> conformal_factors(const std::vector<RowError>& rows, const std::string& left_out = {});
// The log ratio that a share `level` of the rows does not exceed, each publication with the same weight; infinity for
// fewer than two publications or nine rows.
double weighted_quantile(const std::vector<RowError>& rows, double level);

}  // namespace mw::plan
