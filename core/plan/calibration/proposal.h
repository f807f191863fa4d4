// SPDX-License-Identifier: Apache-2.0
// A proposed calibration with its effect on every row: predicted now, held out, and fitted. Writes no files. Plain
// values; any thread.
#pragma once
#include <functional>

#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

struct ProposedRow {
  Measurement measured;
  RowPrediction now, fitted;              // with the current calibration; with the proposed one
  std::optional<RowPrediction> held_out;  // of a fitted row: with a fit to the other rows
  int others = 0;                         // rows of its chip and stack in that fit
  double measured_s = 0;                  // seconds of a step; 0 if the row measures no time
  bool used() const { return is_fitted(measured); }
};

struct ProposedEfficiency {
  CalibrationFactor factor;                         // on the default
  Efficiency original;                              // the default
  double before = 0, after = 0, low = 0, high = 0;  // current value; proposed value with its interval
  bool at_limit = false;                            // see at_limit()
};

struct Proposal {
  Calibration calibration;  // complete, including factors kept from the current one
  std::vector<ProposedRow> rows;
  std::vector<ProposedEfficiency> efficiencies;  // of the chips and stacks that have rows
  ErrorSummary now, held_out, fitted;            // step times of the fitted rows
  ErrorSummary apart_now, apart_fitted;          // of the user's held-out rows
  ErrorSummary shipped_now, shipped_fitted;      // of the published held-out rows
  std::vector<Problem> notes;                    // warnings before accepting
};

struct ProposalInput {
  std::vector<Measurement> rows;       // the user's, with default efficiencies
  std::vector<Measurement> published;  // shipped; their held-out rows are never fitted
  Calibration in_force;
  CalibrationBasis basis;  // of what is proposed
  FitOptions options{};    // names to fit
};
using FitProgress = std::function<void(int done, int total)>;

// Refits the factors of chips and stacks that have rows and keeps all others. The held-out error comes from
// cross-validation with at most ten folds (leave-one-out up to ten rows); for a chip with a single row the held-out
// prediction uses other chips or the defaults. Rows that cannot be predicted become notes. Throws Error CALIBRATION if
// there is nothing to fit, and cancelled() when stopped.
Proposal propose(ProposalInput input, const FitProgress& progress = {}, std::stop_token stop = {});

// The current calibration with `fitted` in place of its factors for the same chips, stacks and names.
Calibration merged(const Calibration& in_force, const std::vector<CalibrationFactor>& fitted,
                   const CalibrationBasis& basis);

}  // namespace mw::plan
