// SPDX-License-Identifier: Apache-2.0
// 90 % intervals of predictions from the errors log(measured / predicted) on published rows.
//
// A stack and chip with at least ten rows has locally weighted, normalised conformal intervals (Lei et al., arXiv
// 1604.04173) for work like that of its rows. Every row of the stack and chip weighs exp(-d^2 / 2), where d is the
// distance of the sizes of the work in doublings; the weights must add up to at least one. The weighted rows give the
// middle and the spread (mean absolute deviation) of the errors; few near rows draw the middle to 0 and the spread to
// the mean absolute error of the stack and chip. The interval reaches `spreads` spreads from the middle: the 90 %
// quantile of |error - middle| / spread of the held-out rows of all such stacks and chips, each without its own run.
//
// Other work has the limits of its stack, or of all rows: from rows that no factor was fitted to, on either side the
// prediction times the exponential of the errors' 5 or 95 % quantile, or, where the rows do not suffice for both, of
// the 90 % quantile of their absolute values. Every publication has the same weight there, because its rows resemble
// each other more than other work (conformal prediction for hierarchical data, arXiv 2306.06342, without the correction
// for few groups).
//
// An interval always contains its prediction. Plain values; any thread.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

constexpr double kIntervalLevel = 0.9;
constexpr int kFewestOwnRows = 10;  // of a stack and chip for intervals of their own

struct IntervalFactors {
  std::array<LimitFactors, kEnumNames<FigureKind>.size()> limits{};  // by FigureKind
  std::array<bool, kEnumNames<FigureKind>.size()> own{};             // from rows of the same stack and chip
  std::string source{};  // "90 % intervals: errors on 12 held-out rows of vllm-gpu"
  LimitFactors& of(FigureKind kind) { return limits[static_cast<size_t>(kind)]; }
  const LimitFactors& of(FigureKind kind) const { return limits[static_cast<size_t>(kind)]; }
  bool is_own(FigureKind kind) const { return own[static_cast<size_t>(kind)]; }
};
// From rows of the stack and chip where they suffice and the work is like theirs; else, for a chip with factors of its
// own, from all rows of the stack; else from all rows. Memory always has limits of the latter two.
IntervalFactors interval_factors(const Calibration& calibration, model::Stack stack, const std::string& chip,
                                 const WorkSize& size);
// Sets the limits of step time, hours, cost, TTFT and TPOT that come from rows of the same stack and chip, and widens
// all others, that of memory too, to the calibrated ones: rows of other chips may resemble each other more than this
// work.
void set_intervals(Plan& plan, const Request& request, const IntervalFactors& factors);
// Replaces intervals, errors and scores by those that follow from `rows`.
void calibrate_intervals(Calibration& calibration, const std::vector<RowError>& rows);

// One paper, repository or benchmark: "arXiv 2605.25645" of "arXiv 2605.25645 v3, serving table".
std::string publication_of(const std::string& source);
// The limits of stacks and of all, from the held-out rows among `rows`, without those of the publication `left_out`, to
// test intervals on rows that do not shape them.
std::vector<ConformalFactor> conformal_factors(const std::vector<RowError>& rows, const std::string& left_out = {});
// The log ratio that a share `level` of the rows does not exceed, each publication with the same weight; infinity for
// fewer than two publications or nine rows.
double weighted_quantile(const std::vector<RowError>& rows, double level);

}  // namespace mw::plan
