// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace mw::plan {
namespace {

// The configuration of a row: rows of several values have the id "configuration, unit".
std::string configuration_of(const Measurement& row) {
  return row.id.substr(0, row.id.find(", "));
}

bool is_scored(const Measurement& row) {
  return row.purpose == MeasurementUse::calibration && row.counted();
}

// Output rate and time per token measure the same steps, so that their scores are pooled.
FigureKind pooled(FigureKind kind) {
  return kind == FigureKind::throughput ? FigureKind::tpot : kind;
}

using StackChip = std::pair<Stack, std::string>;
StackChip part_of(const Measurement& row) {
  return {row.request.stack, row.request.target.chip.id};
}

class Scorer {
 public:
  Scorer(const std::vector<Measurement>& rows, const Calibration& calibration, const FitOptions& options)
      : options_(options), calibration_(calibration) {
    for (const Measurement& m : rows)
      if (is_scored(m)) rows_.push_back(m);
  }

  std::vector<ConformalFactor> run() {
    for (const Measurement& m : rows_) {
      // Memory is not fitted: its errors are held-out errors.
      if (is_memory(m.what)) add_score(m, calibration_, Evidence::others);
      if (is_memory(m.what)) add_score(m, calibration_, Evidence::own);
    }
    score_configurations();
    score_chips();
    std::vector<ConformalFactor> out;
    const auto add = [&](ConformalFactor f, const std::vector<double>& scores) {
      const double quantile = conformal_quantile(scores, kIntervalLevel);
      if (std::isinf(quantile)) return;
      f.factor = std::exp(quantile);
      f.rows = static_cast<int>(scores.size());
      out.push_back(f);
      if (f.kind == FigureKind::tpot) {
        f.kind = FigureKind::throughput;
        out.push_back(std::move(f));
      }
    };
    std::map<FigureKind, std::vector<double>> known;
    for (const auto& [part, scores] : own_) {
      const auto& [kind, where] = part;
      add({.kind = kind, .evidence = Evidence::own, .stack = where.first, .chip = where.second}, scores);
      known[kind].insert(known[kind].end(), scores.begin(), scores.end());
    }
    for (const auto& [kind, scores] : known) add({.kind = kind, .evidence = Evidence::measured_chips}, scores);
    for (const auto& [kind, scores] : others_) add({.kind = kind, .evidence = Evidence::others}, scores);
    return out;
  }

 private:
  using Evidence = ConformalFactor::Evidence;

  void add_score(const Measurement& row, const Calibration& calibration, Evidence evidence) {
    Request request = row.request;
    apply(calibration, request);
    double score = 0;
    try {
      score = std::abs(std::log1p(predicted(row, request).error));
    } catch (const Error&) {
      score = std::numeric_limits<double>::infinity();  // a refused row is outside every interval
    }
    const FigureKind kind = pooled(kind_of(row.what));
    if (evidence == Evidence::own)
      own_[{kind, part_of(row)}].push_back(score);
    else
      others_[kind].push_back(score);
  }

  template <class LeftOut>
  Calibration fit_without(const std::vector<const Measurement*>& rows, LeftOut left_out) const {
    std::vector<Measurement> kept;
    for (const Measurement* m : rows)
      if (!left_out(*m)) kept.push_back(*m);
    return {.basis = {}, .factors = with_means(fit_factors(kept, options_))};
  }

  // Each configuration predicted by a fit to the others of its stack and chip.
  void score_configurations() {
    std::map<StackChip, std::vector<const Measurement*>> parts;
    for (const Measurement& m : rows_)
      if (is_fitted(m)) parts[part_of(m)].push_back(&m);
    for (const auto& [part, rows] : parts) {
      std::set<std::string> configurations;
      for (const Measurement* m : rows) configurations.insert(configuration_of(*m));
      if (configurations.size() < 2) continue;
      for (const std::string& one : configurations) {
        const Calibration fit = fit_without(rows, [&](const Measurement& m) { return configuration_of(m) == one; });
        for (const Measurement* m : rows)
          if (configuration_of(*m) == one) add_score(*m, fit, Evidence::own);
      }
    }
  }

  // Each chip of a stack predicted by a fit to the other chips, or by the defaults where there are none.
  void score_chips() {
    std::vector<const Measurement*> all;
    std::set<StackChip> parts;
    for (const Measurement& m : rows_)
      if (is_fitted(m)) all.push_back(&m), parts.insert(part_of(m));
    for (const StackChip& part : parts) {
      Calibration fit = calibration_;
      std::erase_if(fit.factors, [&](const CalibrationFactor& f) {
        return f.stack == part.first && (f.chip == part.second || f.chip.empty());
      });
      fit.factors = with_means(std::move(fit.factors));
      for (const Measurement* m : all)
        if (part_of(*m) == part) add_score(*m, fit, Evidence::others);
    }
  }

  const FitOptions& options_;
  const Calibration& calibration_;
  std::vector<Measurement> rows_;
  std::map<std::pair<FigureKind, StackChip>, std::vector<double>> own_;
  std::map<FigureKind, std::vector<double>> others_;
};

const ConformalFactor* factor_of(const Calibration& calibration, const Request& request, FigureKind kind) {
  using Evidence = ConformalFactor::Evidence;
  const std::string& chip = request.target.chip.id;
  const bool measured =
      std::any_of(calibration.factors.begin(), calibration.factors.end(),
                  [&](const CalibrationFactor& f) { return f.stack == request.stack && f.chip == chip; });
  const ConformalFactor* best = nullptr;
  for (const ConformalFactor& f : calibration.intervals) {
    if (f.kind != kind) continue;
    if (f.evidence == Evidence::own && f.stack == request.stack && f.chip == chip) return &f;
    if (f.evidence == (measured ? Evidence::measured_chips : Evidence::others)) best = &f;
  }
  return best;
}

// Never narrower than what the intervals of the efficiencies give: rows of one source resemble each other more than
// they resemble other work on the same chip.
void widen(Estimate& estimate, double factor) {
  if (factor < 1 || estimate.value <= 0) return;
  estimate.low = std::min(estimate.low, estimate.value / factor);
  estimate.high = std::max(estimate.high, estimate.value * factor);
}

}  // namespace

double IntervalFactors::of(FigureKind kind) const {
  switch (kind) {
    case FigureKind::training:
      return training;
    case FigureKind::memory:
      return memory;
    case FigureKind::throughput:
      return throughput;
    case FigureKind::tpot:
      return tpot;
    case FigureKind::ttft:
      return ttft;
  }
  return 0;
}

IntervalFactors interval_factors(const Calibration& calibration, const Request& request) {
  using Evidence = ConformalFactor::Evidence;
  IntervalFactors out;
  const FigureKind main = serves(request.stack) ? FigureKind::tpot : FigureKind::training;
  for (const FigureKind kind : all_values<FigureKind>()) {
    const ConformalFactor* f = factor_of(calibration, request, kind);
    if (!f) continue;
    double IntervalFactors::*const members[] = {&IntervalFactors::training, &IntervalFactors::memory,
                                                &IntervalFactors::throughput, &IntervalFactors::tpot,
                                                &IntervalFactors::ttft};
    out.*members[static_cast<size_t>(kind)] = f->factor;
    if (kind != main) continue;
    const std::string whose = f->evidence == Evidence::own ? std::string(model::to_string(f->stack)) + " on " + f->chip
                              : f->evidence == Evidence::measured_chips ? "chips that have rows of their own"
                                                                        : "chips that were left out of the fit";
    out.source = "90 % intervals: errors on " + std::to_string(f->rows) + " rows of " + whose;
  }
  return out;
}

void widen_intervals(Plan& plan, const Request& request, const IntervalFactors& factors) {
  widen(plan.memory.total, factors.memory);
  if (request.work == Work::train)
    for (Estimate* e : {&plan.step.seconds, &plan.run.hours, &plan.run.usd}) widen(*e, factors.training);
  if (request.work == Work::serve && plan.serve) {
    widen(plan.step.seconds, factors.tpot);
    widen(plan.serve->tpot, factors.tpot);
    widen(plan.serve->ttft, factors.ttft);
  }
  if (!factors.source.empty()) plan.sources.push_back(factors.source);
}

double conformal_quantile(std::vector<double> scores, double level) {
  const auto rank = static_cast<size_t>(std::ceil(level * (static_cast<double>(scores.size()) + 1)));
  if (rank > scores.size()) return std::numeric_limits<double>::infinity();
  std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(rank - 1), scores.end());
  return scores[rank - 1];
}

std::vector<ConformalFactor> conformal_factors(const std::vector<Measurement>& rows, const Calibration& calibration,
                                               const FitOptions& options) {
  return Scorer(rows, calibration, options).run();
}

}  // namespace mw::plan
