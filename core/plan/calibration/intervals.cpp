// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/intervals.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace mw::plan {
namespace {

constexpr size_t kFewestPublications = 2, kFewestRows = 9;  // of a 90 % quantile

using Evidence = ConformalFactor::Evidence;

// Output rate and time per token measure the same steps, so that their errors are pooled.
FigureKind pooled(FigureKind kind) {
  return kind == FigureKind::throughput ? FigureKind::tpot : kind;
}

const ConformalFactor* factor_of(const Calibration& calibration, Stack stack, const std::string& chip,
                                 FigureKind kind) {
  const bool measured = std::any_of(calibration.factors.begin(), calibration.factors.end(),
                                    [&](const CalibrationFactor& f) { return f.stack == stack && f.chip == chip; });
  const ConformalFactor *of_stack = nullptr, *of_all = nullptr;
  for (const ConformalFactor& f : calibration.intervals) {
    if (f.kind != kind) continue;
    if (f.evidence == Evidence::own && f.stack == stack && f.chip == chip) return &f;
    if (f.evidence == Evidence::stack && f.stack == stack && measured) of_stack = &f;
    if (f.evidence == Evidence::all) of_all = &f;
  }
  return of_stack ? of_stack : of_all;
}

std::string rows_text(const ConformalFactor& f) {
  const std::string stack(model::to_string(f.stack));
  const std::string whose = f.evidence == Evidence::own     ? stack + " on " + f.chip
                            : f.evidence == Evidence::stack ? stack
                                                            : "all stacks and chips";
  return "90 % intervals: errors on " + std::to_string(f.rows) + " held-out rows of " + whose;
}

// Never narrower than what the intervals of the efficiencies give: rows of one source resemble each other more than
// they resemble other work on the same chip.
void widen(Estimate& estimate, const LimitFactors& factors) {
  if (!factors.is_calibrated() || estimate.value <= 0) return;
  estimate.low = std::min(estimate.low, estimate.value / factors.below);
  estimate.high = std::max(estimate.high, estimate.value * factors.above);
}

}  // namespace

IntervalFactors interval_factors(const Calibration& calibration, Stack stack, const std::string& chip) {
  IntervalFactors out;
  const FigureKind main = serves(stack) ? FigureKind::tpot : FigureKind::training;
  for (const FigureKind kind : all_values<FigureKind>()) {
    const ConformalFactor* f = factor_of(calibration, stack, chip, kind);
    if (!f) continue;
    out.of(kind) = f->limits;
    if (kind == main) out.source = rows_text(*f);
  }
  return out;
}

void widen_intervals(Plan& plan, const Request& request, const IntervalFactors& factors) {
  widen(plan.memory.total, factors.of(FigureKind::memory));
  if (request.work == Work::train)
    for (Estimate* e : {&plan.step.seconds, &plan.run.hours, &plan.run.usd})
      widen(*e, factors.of(FigureKind::training));
  if (request.work == Work::serve && plan.serve) {
    widen(plan.step.seconds, factors.of(FigureKind::tpot));
    widen(plan.serve->tpot, factors.of(FigureKind::tpot));
    widen(plan.serve->ttft, factors.of(FigureKind::ttft));
  }
  if (!factors.source.empty()) plan.sources.push_back(factors.source);
}

std::string publication_of(const std::string& source) {
  constexpr std::string_view kArxiv = "arXiv ";
  if (source.compare(0, kArxiv.size(), kArxiv) != 0) return source.substr(0, source.find(": "));
  return source.substr(0, source.find_first_not_of("0123456789.", kArxiv.size()));
}

double weighted_quantile(const std::vector<RowError>& rows, double level) {
  std::map<std::string, size_t> counts;
  for (const RowError& row : rows) ++counts[publication_of(row.source)];
  if (counts.size() < kFewestPublications || rows.size() < kFewestRows) return std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> weighted;  // error, weight
  for (const RowError& row : rows)
    weighted.emplace_back(row.log_ratio, 1.0 / static_cast<double>(counts[publication_of(row.source)]));
  std::sort(weighted.begin(), weighted.end());
  double sum = 0;
  for (const auto& [error, weight] : weighted)
    if ((sum += weight) >= level * static_cast<double>(counts.size()) * (1 - 1e-12)) return error;
  return weighted.back().first;
}

namespace {

// Split conformal prediction: of n errors the ceil(level (n + 1))-th; infinity if that is beyond the last.
double row_quantile(const std::vector<RowError>& rows, double level) {
  std::vector<double> errors;
  std::transform(rows.begin(), rows.end(), std::back_inserter(errors), [](const RowError& r) { return r.log_ratio; });
  std::sort(errors.begin(), errors.end());
  const auto rank = static_cast<size_t>(std::ceil(level * static_cast<double>(errors.size() + 1) - 1e-9));
  return rank > errors.size() ? std::numeric_limits<double>::infinity() : errors[rank - 1];
}

// One publication suffices for its own stack and chip: other stacks and chips resemble it less than its rows each
// other.
double quantile_of(Evidence evidence, const std::vector<RowError>& rows, double level) {
  const double by_publication = weighted_quantile(rows, level);
  return std::isinf(by_publication) && evidence == Evidence::own ? row_quantile(rows, level) : by_publication;
}

template <class Function>
std::vector<RowError> with_ratios(std::vector<RowError> rows, Function function) {
  for (RowError& row : rows) row.log_ratio = function(row.log_ratio);
  return rows;
}

// Nine rows of one publication have a 90 % quantile, but nineteen are needed for one of 95 % on either side.
std::optional<LimitFactors> limits_of(Evidence evidence, const std::vector<RowError>& rows) {
  constexpr double kSideLevel = (1 + kIntervalLevel) / 2;
  double above = quantile_of(evidence, rows, kSideLevel);
  double below = quantile_of(evidence, with_ratios(rows, [](double r) { return -r; }), kSideLevel);
  if (std::isinf(above) || std::isinf(below))
    above = below = quantile_of(evidence, with_ratios(rows, [](double r) { return std::abs(r); }), kIntervalLevel);
  if (std::isinf(above)) return std::nullopt;
  return LimitFactors{std::exp(std::max(0.0, below)), std::exp(std::max(0.0, above))};
}

}  // namespace

std::vector<ConformalFactor> conformal_factors(const std::vector<RowError>& rows, const std::string& left_out) {
  std::map<std::tuple<FigureKind, Evidence, Stack, std::string>, std::vector<RowError>> parts;
  for (const RowError& row : rows) {
    if (!left_out.empty() && publication_of(row.source) == left_out) continue;
    const FigureKind kind = pooled(row.kind);
    parts[{kind, Evidence::own, row.stack, row.chip}].push_back(row);
    parts[{kind, Evidence::stack, row.stack, {}}].push_back(row);
    parts[{kind, Evidence::all, Stack::engine, {}}].push_back(row);
  }
  std::vector<ConformalFactor> out;
  for (const auto& [part, errors] : parts) {
    const std::optional<LimitFactors> limits = limits_of(std::get<Evidence>(part), errors);
    if (!limits) continue;
    ConformalFactor f;
    std::tie(f.kind, f.evidence, f.stack, f.chip) = part;
    f.limits = *limits;
    f.rows = static_cast<int>(errors.size());
    out.push_back(f);
    if (f.kind != FigureKind::tpot) continue;
    f.kind = FigureKind::throughput;
    f.limits = limits->inverse();
    out.push_back(std::move(f));
  }
  return out;
}

}  // namespace mw::plan
