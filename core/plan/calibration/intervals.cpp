// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace mw::plan {
namespace {

constexpr size_t kFewestPublications = 2, kFewestRows = 9;  // of a 90 % quantile

using Evidence = ConformalFactor::Evidence;

// Output rate and time per token measure the same steps, so that their errors are pooled.
FigureKind pooled(FigureKind kind) {
  return kind == FigureKind::throughput ? FigureKind::tpot : kind;
}

const ConformalFactor* factor_of(const Calibration& calibration, model::Stack stack, const std::string& chip,
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

void widen(Estimate& estimate, const LimitFactors& factors) {
  if (!factors.is_calibrated() || estimate.value <= 0) return;
  estimate.low = std::min(estimate.low, estimate.value / factors.below);
  estimate.high = std::max(estimate.high, estimate.value * factors.above);
}

void replace(Estimate& estimate, const LimitFactors& factors) {
  if (estimate.value <= 0) return;
  estimate.low = estimate.value / factors.below;
  estimate.high = estimate.value * factors.above;
}

using Doublings = std::array<double, 6>;  // of each dimension of the work
Doublings doublings(const WorkSize& size) {
  return {std::log2(std::max(1.0, size.devices)),    std::log2(std::max(1.0, size.slices)),
          std::log2(std::max(1.0, size.parameters)), std::log2(std::max(1.0, size.tokens)),
          std::log2(std::max(1.0, size.answer)),     std::log2(std::max(1.0, size.users))};
}

double squared_distance(const Doublings& a, const Doublings& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

struct LocalError {
  double middle = 0, spread = 0;
  int rows = 0;
};

// The weight of rows without any error, and of rows with the spread of the whole stack and chip, beside the near rows.
constexpr double kMiddleRows = 2, kSpreadRows = 3;

struct SizedRow {
  const RowError* error;
  Doublings size;
};
using GroupRows = std::vector<SizedRow>;  // of one kind, stack and chip

// Work is like the rows if their weights add up to those of one row of the same size.
constexpr double kLeastWeight = 1;

// The errors on work of this size; none if it is unlike the rows, or if fewer than kFewestOwnRows are left without
// those of the run.
std::optional<LocalError> local_error(const GroupRows& rows, const Doublings& size,
                                      const std::string& without_run = {}) {
  double weights = 0, errors = 0, all = 0;
  LocalError out;
  std::vector<std::pair<double, double>> weighted;  // weight, error
  weighted.reserve(rows.size());
  for (const auto& [row, row_size] : rows) {
    if (!without_run.empty() && row->run == without_run) continue;
    const double weight = std::exp(-squared_distance(row_size, size) / 2);
    weighted.emplace_back(weight, row->log_ratio);
    weights += weight, errors += weight * row->log_ratio, all += std::abs(row->log_ratio);
  }
  out.rows = static_cast<int>(weighted.size());
  if (out.rows < kFewestOwnRows || weights < kLeastWeight) return std::nullopt;
  out.middle = errors / (weights + kMiddleRows);
  double deviations = kSpreadRows * all / out.rows;
  for (const auto& [weight, error] : weighted) deviations += weight * std::abs(error - out.middle);
  out.spread = deviations / (weights + kSpreadRows);
  return out;
}

bool has_local_limits(FigureKind kind) {
  return kind != FigureKind::memory;
}

LimitFactors limits_of(const LocalError& error, double spreads) {
  const double low = error.middle - spreads * error.spread, high = error.middle + spreads * error.spread;
  return {std::exp(std::max(0.0, -low)), std::exp(std::max(0.0, high))};
}

std::string rows_text(const LocalError& error, model::Stack stack, const std::string& chip) {
  return "90 % intervals: errors on " + std::to_string(error.rows) + " published rows of " +
         std::string(model::to_string(stack)) + " on " + chip + ", most of all those on work of this size";
}

}  // namespace

IntervalFactors interval_factors(const Calibration& calibration, model::Stack stack, const std::string& chip,
                                 const WorkSize& size) {
  IntervalFactors out;
  const FigureKind main = serves(stack) ? FigureKind::tpot : FigureKind::training;
  for (const FigureKind kind : all_values<FigureKind>()) {
    const auto score = std::find_if(calibration.scores.begin(), calibration.scores.end(),
                                    [&](const SpreadScore& s) { return s.kind == pooled(kind); });
    GroupRows rows;
    if (score != calibration.scores.end())
      for (const RowError& row : calibration.errors)
        if (row.kind == pooled(kind) && row.stack == stack && row.chip == chip)
          rows.push_back({&row, doublings(row.size)});
    if (const std::optional<LocalError> error = local_error(rows, doublings(size))) {
      out.of(kind) = limits_of(*error, score->spreads);
      if (kind == FigureKind::throughput) out.of(kind) = out.of(kind).inverse();
      out.own[static_cast<size_t>(kind)] = true;
      if (kind == main) out.source = rows_text(*error, stack, chip);
      continue;
    }
    const ConformalFactor* f = factor_of(calibration, stack, chip, kind);
    if (!f) continue;
    out.of(kind) = f->limits;
    if (kind == main) out.source = rows_text(*f);
  }
  return out;
}

void set_intervals(Plan& plan, const Request& request, const IntervalFactors& factors) {
  const auto set = [&](Estimate& estimate, FigureKind kind) {
    if (factors.is_own(kind))
      replace(estimate, factors.of(kind));
    else
      widen(estimate, factors.of(kind));
  };
  set(plan.memory.total, FigureKind::memory);
  if (request.work == Work::train)
    for (Estimate* e : {&plan.step.seconds, &plan.run.hours, &plan.run.usd}) set(*e, FigureKind::training);
  if (request.work == Work::serve && plan.serve) {
    set(plan.step.seconds, FigureKind::tpot);
    set(plan.serve->decode_step, FigureKind::tpot);
    set(plan.serve->tpot, FigureKind::tpot);
    set(plan.serve->ttft, FigureKind::ttft);
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

// Split conformal prediction: of n scores the ceil(level (n + 1))-th; infinity if that is beyond the last.
double score_quantile(std::vector<double> scores, double level) {
  std::sort(scores.begin(), scores.end());
  const auto rank = static_cast<size_t>(std::ceil(level * static_cast<double>(scores.size() + 1) - 1e-9));
  return rank > scores.size() ? std::numeric_limits<double>::infinity() : scores[rank - 1];
}

template <class Function>
std::vector<RowError> with_ratios(std::vector<RowError> rows, Function function) {
  for (RowError& row : rows) row.log_ratio = function(row.log_ratio);
  return rows;
}

std::optional<LimitFactors> limits_of(const std::vector<RowError>& rows) {
  constexpr double kSideLevel = (1 + kIntervalLevel) / 2;
  double above = weighted_quantile(rows, kSideLevel);
  double below = weighted_quantile(with_ratios(rows, [](double r) { return -r; }), kSideLevel);
  if (std::isinf(above) || std::isinf(below))
    above = below = weighted_quantile(with_ratios(rows, [](double r) { return std::abs(r); }), kIntervalLevel);
  if (std::isinf(above)) return std::nullopt;
  return LimitFactors{std::exp(std::max(0.0, below)), std::exp(std::max(0.0, above))};
}

}  // namespace

std::vector<ConformalFactor> conformal_factors(const std::vector<RowError>& rows, const std::string& left_out) {
  std::map<std::tuple<FigureKind, Evidence, model::Stack>, std::vector<RowError>> parts;
  for (const RowError& row : rows) {
    if (row.use != MeasurementUse::holdout) continue;
    if (!left_out.empty() && publication_of(row.source) == left_out) continue;
    const FigureKind kind = pooled(row.kind);
    parts[{kind, Evidence::stack, row.stack}].push_back(row);
    parts[{kind, Evidence::all, model::Stack::engine}].push_back(row);
  }
  std::vector<ConformalFactor> out;
  for (const auto& [part, errors] : parts) {
    const std::optional<LimitFactors> limits = limits_of(errors);
    if (!limits) continue;
    ConformalFactor f;
    std::tie(f.kind, f.evidence, f.stack) = part;
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

void calibrate_intervals(Calibration& calibration, const std::vector<RowError>& rows) {
  calibration.intervals = conformal_factors(rows);
  calibration.errors.clear();
  calibration.scores.clear();
  std::map<std::tuple<FigureKind, model::Stack, std::string>, GroupRows> groups;
  for (const RowError& row : rows)
    if (has_local_limits(row.kind))
      groups[{pooled(row.kind), row.stack, row.chip}].push_back({&row, doublings(row.size)});
  std::map<FigureKind, std::vector<double>> scores;
  for (const auto& [group, members] : groups) {
    if (members.size() < kFewestOwnRows) continue;
    for (const auto& [row, size] : members) {
      calibration.errors.push_back(*row);
      calibration.errors.back().kind = std::get<FigureKind>(group);
      if (row->use != MeasurementUse::holdout) continue;
      const std::optional<LocalError> others = local_error(members, size, row->run);
      if (others && others->spread > 0)
        scores[std::get<FigureKind>(group)].push_back(std::abs(row->log_ratio - others->middle) / others->spread);
    }
  }
  for (auto& [kind, of_kind] : scores) {
    const int count = static_cast<int>(of_kind.size());
    const double spreads = score_quantile(std::move(of_kind), kIntervalLevel);
    if (std::isfinite(spreads)) calibration.scores.push_back({kind, spreads, count});
  }
}

}  // namespace mw::plan
