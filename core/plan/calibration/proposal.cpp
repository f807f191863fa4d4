// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/proposal.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/base/counted.h"

namespace mw::plan {
namespace {

constexpr int kMostFolds = 10;

const Efficiencies::Named& efficiency_named(std::string_view name) {
  const auto& all = Efficiencies::names();
  return *std::find_if(all.begin(), all.end(), [&](const auto& n) { return n.name == name; });
}

RowPrediction predicted(const Measurement& row, const Calibration& calibration) {
  Request r = row.request;
  apply(calibration, r);
  return predicted(row, r);
}

bool same_group(const Measurement& a, const Measurement& b) {
  return a.request.stack == b.request.stack && a.request.target.chip.id == b.request.target.chip.id;
}

// Removes rows that cannot be predicted and adds a note for each.
void leave_out_unpredictable(std::vector<Measurement>& rows, std::vector<Problem>& notes) {
  std::erase_if(rows, [&](const Measurement& m) {
    const auto say = [&](Problem p) {
      p.id = "MEASUREMENT";
      p.severity = Severity::error;
      p.message = "the row cannot be predicted: " + p.message;
      p.place = "rows." + m.id + (p.place.empty() ? "" : " (" + p.place + ")");
      if (p.fix.empty()) p.fix = "correct the row or remove it";
      notes.push_back(std::move(p));
      return true;
    };
    try {
      const RowPrediction c = predicted(m, Calibration{});
      if (std::isfinite(c.error) && c.predicted > 0) return false;
      return say({.message = "its prediction is no number above zero",
                  .found = number_text(c.predicted),
                  .expected = "a value in " + m.unit});
    } catch (const Error& e) {
      return say(e.problem());
    }
  });
}

// The fold of each row in the cross-validation, -1 for rows that are not fitted. The rows of a chip are spread over
// the folds.
std::vector<int> parts_of(const std::vector<ProposedRow>& rows) {
  std::vector<int> parts(rows.size(), -1);
  const auto used = std::count_if(rows.begin(), rows.end(), [](const ProposedRow& r) { return r.used(); });
  const int most = static_cast<int>(std::min<std::ptrdiff_t>(used, kMostFolds));
  int next = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].used() || parts[i] >= 0) continue;
    for (size_t j = i; j < rows.size(); ++j)
      if (rows[j].used() && same_group(rows[i].measured, rows[j].measured)) parts[j] = next++ % most;
  }
  return parts;
}

// Removes the factors of the current calibration that were fitted to these rows.
Calibration without(Calibration calibration, const std::set<std::string>& rows) {
  std::erase_if(calibration.factors, [&](const CalibrationFactor& f) {
    return !f.chip.empty() &&
           std::any_of(f.rows.begin(), f.rows.end(), [&](const auto& id) { return rows.contains(id); });
  });
  calibration.factors = with_means(std::move(calibration.factors));
  return calibration;
}

class Proposer {
 public:
  Proposer(ProposalInput input, const FitProgress& progress, std::stop_token stop)
      : in_(std::move(input)), progress_(progress), stop_(std::move(stop)) {}

  Proposal run() {
    for (const std::string& id : keep_held_out(in_.rows, in_.published))
      out_.notes.push_back({.id = "HELD-OUT",
                            .severity = Severity::info,
                            .message = "the program holds this measurement out: it is predicted, never fitted to",
                            .place = "rows." + id});
    leave_out_unpredictable(in_.rows, out_.notes);
    for (const Measurement& m : in_.rows) out_.rows.push_back({.measured = m, .now = {}, .fitted = {}, .held_out = {}});
    const std::vector<CalibrationFactor> factors = fit_beside(in_.in_force, in_.rows);
    if (factors.empty() && std::none_of(in_.rows.begin(), in_.rows.end(), is_of_engine)) throw nothing();
    out_.calibration = factors.empty() ? in_.in_force : merged(in_.in_force, factors, in_.basis);
    hold_out();
    for (ProposedRow& row : out_.rows) {
      row.now = predicted(row.measured, in_.in_force);
      row.fitted = predicted(row.measured, out_.calibration);
      if (is_time(row.measured.what)) row.measured_s = seconds_of(row);
    }
    add_efficiencies(factors);
    summarise_all();
    add_notes();
    return std::move(out_);
  }

 private:
  Error nothing() const {
    if (!out_.notes.empty() && out_.notes.back().severity == Severity::error) return Error(out_.notes.back());
    return Error("CALIBRATION", "nothing to fit",
                 {.place = "rows",
                  .found = counted(in_.rows.size(), "row") + ", none of them a step time with use = calibration",
                  .expected = "at least one",
                  .fix = "give measured step times (s/step, tokens/s ...) with \"use\": \"calibration\""});
  }

  // A run of this machine shows the error of the rates in force, and nothing is fitted to it.
  static bool is_of_engine(const Measurement& m) { return m.request.stack == model::Stack::engine; }

  // Measured seconds of a step, from the predicted seconds and the relative error, which works for every unit.
  double seconds_of(const ProposedRow& row) const {
    Request r = row.measured.request;
    apply(in_.in_force, r);
    return predict(r).step.seconds.value / (1 + row.now.error);
  }

  // Efficiencies that are not fitted keep their calibrated values during the fit.
  std::vector<CalibrationFactor> fit_beside(Calibration kept, std::vector<Measurement> rows) const {
    std::erase_if(kept.factors, [&](const CalibrationFactor& f) {
      const auto& names = serves(f.stack) ? in_.options.serving : in_.options.names;
      return std::find(names.begin(), names.end(), f.name) != names.end();
    });
    for (Measurement& m : rows) apply(kept, m.request);
    return fit_factors(rows, in_.options, stop_);
  }

  void hold_out() {
    const std::vector<int> parts = parts_of(out_.rows);
    const int count = parts.empty() ? 0 : 1 + *std::max_element(parts.begin(), parts.end());
    for (int part = 0; part < count; ++part) {
      if (progress_) progress_(part, count);
      std::vector<Measurement> others;
      std::set<std::string> left_out;
      for (size_t i = 0; i < parts.size(); ++i)
        if (parts[i] == part)
          left_out.insert(out_.rows[i].measured.id);
        else if (parts[i] >= 0)
          others.push_back(out_.rows[i].measured);
      const Calibration kept = without(in_.in_force, left_out),
                        fold = merged(kept, fit_beside(kept, others), in_.basis);
      for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i] != part) continue;
        ProposedRow& row = out_.rows[i];
        row.held_out = predicted(row.measured, fold);
        row.others = static_cast<int>(std::count_if(others.begin(), others.end(),
                                                    [&](const Measurement& m) { return same_group(m, row.measured); }));
      }
    }
    if (progress_ && count > 0) progress_(count, count);
  }

  void add_efficiencies(const std::vector<CalibrationFactor>& factors) {
    for (const CalibrationFactor& f : factors) {
      const auto row = std::find_if(out_.rows.begin(), out_.rows.end(), [&](const ProposedRow& r) {
        return r.used() && r.measured.request.stack == f.stack && r.measured.request.target.chip.id == f.chip;
      });
      const auto member = efficiency_named(f.name).member;
      Request before = row->measured.request, after = before;
      const Efficiency original = before.efficiencies.*member;
      apply(in_.in_force, before);
      apply(out_.calibration, after);
      const Efficiency &b = before.efficiencies.*member, &a = after.efficiencies.*member;
      out_.efficiencies.push_back({f, original, b.value, a.value, a.low, a.high, at_limit(f, original, in_.options)});
    }
  }

  void summarise_all() {
    std::vector<Measurement> rows;
    std::vector<RowPrediction> now, held_out, fitted;
    for (const ProposedRow& r : out_.rows) {
      rows.push_back(r.measured);
      now.push_back(r.now);
      held_out.push_back(r.held_out.value_or(r.fitted));
      fitted.push_back(r.fitted);
    }
    out_.now = summarise(rows, now, MeasurementUse::calibration, is_speed);
    out_.held_out = summarise(rows, held_out, MeasurementUse::calibration, is_speed);
    out_.fitted = summarise(rows, fitted, MeasurementUse::calibration, is_speed);
    out_.apart_now = summarise(rows, now, MeasurementUse::holdout, is_speed);
    out_.apart_fitted = summarise(rows, fitted, MeasurementUse::holdout, is_speed);
    std::vector<Measurement> published = in_.published;
    std::erase_if(published, [](const Measurement& m) {
      return m.purpose != MeasurementUse::holdout || !is_speed(m.what) || !m.counted();
    });
    out_.shipped_now =
        summarise(published, predict_all(published, in_.in_force, stop_), MeasurementUse::holdout, is_speed);
    out_.shipped_fitted =
        summarise(published, predict_all(published, out_.calibration, stop_), MeasurementUse::holdout, is_speed);
  }

  bool fitted_before() const {
    return std::any_of(out_.rows.begin(), out_.rows.end(), [&](const ProposedRow& r) {
      return std::any_of(in_.in_force.factors.begin(), in_.in_force.factors.end(), [&](const CalibrationFactor& f) {
        return std::find(f.rows.begin(), f.rows.end(), r.measured.id) != f.rows.end();
      });
    });
  }

  void add_notes() {
    const auto note = [&](Severity severity, std::string message, std::string found) {
      out_.notes.push_back(
          {.id = "CALIBRATION", .severity = severity, .message = std::move(message), .found = std::move(found)});
    };
    if (std::any_of(in_.rows.begin(), in_.rows.end(), is_of_engine))
      note(Severity::info,
           "nothing is fitted to runs of this machine, whose plans follow from `meshwright bench --save` and its runs",
           {});
    const auto percent = [](double x) { return number_text(100 * x, 3) + " %"; };
    if (fitted_before())
      note(Severity::info,
           "the current calibration was fitted to some of these rows, so their current error is not a held-out error",
           {});
    else if (out_.held_out.mean > out_.now.mean)
      note(Severity::warning,
           "held-out rows are predicted worse than with the current calibration: the fit does not generalise",
           "mean error " + percent(out_.now.mean) + " now, " + percent(out_.held_out.mean) + " held out");
    for (const auto& [now, fitted, whose] :
         {std::tuple{&out_.apart_now, &out_.apart_fitted, "your own rows marked as held out"},
          {&out_.shipped_now, &out_.shipped_fitted, "the program's own held-out rows"}})
      if (fitted->mean > now->mean + 0.005)
        note(Severity::warning, std::string(whose) + " are predicted worse than now",
             "mean error " + percent(now->mean) + " now, " + percent(fitted->mean) + " with the fit");
    for (const ProposedEfficiency& e : out_.efficiencies) {
      const std::string which = e.factor.name + " of " + e.factor.chip + ", " + std::string(to_string(e.factor.stack));
      if (e.at_limit) note(Severity::warning, "the rows ask for a value beyond its limit", which);
      if (e.factor.rows.size() == 1)
        note(Severity::info, "one row only: no other of this chip and stack to hold out against", which);
    }
  }

  ProposalInput in_;
  const FitProgress& progress_;
  std::stop_token stop_;
  Proposal out_;
};

}  // namespace

Calibration merged(const Calibration& in_force, const std::vector<CalibrationFactor>& fitted,
                   const CalibrationBasis& basis) {
  Calibration out{basis, fitted};
  for (CalibrationFactor f : in_force.factors) {
    const auto replaced = [&](const CalibrationFactor& n) {
      return n.stack == f.stack && n.chip == f.chip && n.name == f.name;
    };
    if (f.chip.empty() || std::any_of(fitted.begin(), fitted.end(), replaced)) continue;
    if (!f.basis) f.basis = in_force.basis;
    out.factors.push_back(std::move(f));
  }
  out.factors = with_means(std::move(out.factors));
  out.intervals = in_force.intervals;
  out.errors = in_force.errors;
  out.scores = in_force.scores;
  return out;
}

Proposal propose(ProposalInput input, const FitProgress& progress, std::stop_token stop) {
  return Proposer(std::move(input), progress, std::move(stop)).run();
}

}  // namespace mw::plan
