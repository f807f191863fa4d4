// SPDX-License-Identifier: Apache-2.0
// What a fit would change, to be looked at before it is accepted: every row as predicted now, without it, and fitted.
// Nothing is written here. Plain values; any thread.
#pragma once
#include <functional>
#include <map>

#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

struct ProposedRow {
  Measurement measured;
  Comparison now, fitted;              // with the calibration in force; with the proposed one
  std::optional<Comparison> held_out;  // of a fitted row: with what the other rows say
  int others = 0;                      // rows of its chip and stack that the held-out prediction was fitted to
  double measured_s = 0;               // seconds of a step, whatever the unit; 0 where it is no time
  bool used() const { return is_fitted(measured); }
};

struct ProposedEfficiency {
  CalibrationFactor factor;                         // on the default
  Efficiency original;                              // the default
  double before = 0, after = 0, low = 0, high = 0;  // in force; proposed with its interval
  bool at_limit = false;                            // the rows would have it further
};

struct Proposal {
  Calibration calibration;  // all of it, what was kept from the one in force included
  std::vector<ProposedRow> rows;
  std::vector<ProposedEfficiency> efficiencies;  // of the chips and stacks that have rows
  ErrorSummary now, held_out, fitted;            // step times of the rows that are fitted to
  ErrorSummary apart_now, apart_fitted;          // of the given rows that are marked as held out
  ErrorSummary shipped_now, shipped_fitted;      // of the program's own held out rows
  std::vector<Problem> notes;                    // what to know before accepting
};

struct ProposalInput {
  std::vector<Measurement> rows;       // the user's, with the defaults of their stacks and targets
  std::vector<Measurement> published;  // the program's: what is held out of them is never fitted to
  Calibration in_force;
  CalibrationBasis basis;  // of what is proposed
  FitOptions options{};    // names to fit
};
using FitProgress = std::function<void(int done, int total)>;

// Factors of the chips and stacks that have rows are fitted anew, all others stay. Hold-out error: rows in at most ten
// parts, each predicted by what the others give (leave one out up to ten rows); a chip with one row has no others, so
// that its held-out prediction rests on other chips or on the defaults. Throws Error CALIBRATION where there is nothing
// to fit; rows that cannot be predicted at all become notes and are left out; cancelled() when stopped.
Proposal propose(ProposalInput input, const FitProgress& progress = {}, std::stop_token stop = {});

// The calibration in force with these factors in place of its own for the same chips, stacks and names.
Calibration merged(const Calibration& in_force, const std::vector<CalibrationFactor>& fitted,
                   const CalibrationBasis& basis);

}  // namespace mw::plan
