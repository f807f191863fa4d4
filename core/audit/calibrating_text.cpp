// SPDX-License-Identifier: Apache-2.0
// Text of a proposed calibration, for terminal and window.
#include <algorithm>
#include <cstdio>

#include "core/audit/calibrating.h"
#include "core/base/text.h"
#include "core/present/table.h"

namespace mw::audit {
namespace {

using plan::Proposal;
using plan::ProposedRow;

std::string rows_text(const Proposal& p) {
  present::Table table = present::figure_table(
      {"row", "chip", "stack", "unit", "measured", "now", "held out", "fitted", "error now", "held out", "fitted"});
  for (const ProposedRow& r : p.rows) {
    const plan::Measurement& m = r.measured;
    const auto held_out = [&](auto text) { return r.held_out ? text(*r.held_out) : std::string("-"); };
    table.add({m.id + (r.used() ? "" : " (not fitted)"), m.request.target.chip.id,
               std::string(model::to_string(m.request.stack)), m.unit, number_text(m.value),
               number_text(r.now.predicted),
               held_out([](const plan::RowPrediction& c) { return number_text(c.predicted); }),
               number_text(r.fitted.predicted), error_text(r.now.error),
               held_out([](const plan::RowPrediction& c) { return error_text(c.error); }), error_text(r.fitted.error)});
  }
  return present::to_text(table, 2);
}

std::string efficiencies_text(const Proposal& p) {
  present::Table table = present::figure_table({"efficiency", "chip", "stack", "now", "proposed (interval)", "rows"});
  for (const plan::ProposedEfficiency& e : p.efficiencies)
    table.add({e.factor.name + (e.at_limit ? " (at its limit)" : ""), e.factor.chip,
               std::string(model::to_string(e.factor.stack)), number_text(e.before, 3),
               interval_text(e.after, e.low, e.high), std::to_string(e.factor.rows.size())});
  return present::to_text(table, 2);
}

}  // namespace

std::string error_text(double error) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * error);
  return text;
}

std::string summary_text(const plan::ErrorSummary& s) {
  if (s.rows == 0) return "no rows";
  return "mean " + tenths_text(s.mean) + ", worst " + tenths_text(s.worst) + " (" + s.worst_row + ")";
}

std::string interval_text(double value, double low, double high) {
  return number_text(value, 3) + " (" + number_text(low, 3) + " to " + number_text(high, 3) + ")";
}

std::string verdict_text(const Proposal& p) {
  std::string out = "Step time, each row predicted without it: mean error " + tenths_text(p.held_out.mean) +
                    ", worst " + tenths_text(p.held_out.worst) + "; now: mean " + tenths_text(p.now.mean) + ", worst " +
                    tenths_text(p.now.worst) + ".";
  if (p.apart_now.rows > 0)
    out += " Your " + std::to_string(p.apart_now.rows) + " held-out rows: mean " + tenths_text(p.apart_now.mean) +
           " now, " + tenths_text(p.apart_fitted.mean) + " with the fit.";
  if (p.shipped_now.rows > 0)
    out += " The program's " + std::to_string(p.shipped_now.rows) + " held-out rows: mean " +
           tenths_text(p.shipped_now.mean) + " now, " + tenths_text(p.shipped_fitted.mean) + " with the fit.";
  return out;
}

std::string calibrated_text(const CalibrationResult& calibrated) {
  if (!calibrated.proposal) return {};
  const Proposal& p = *calibrated.proposal;
  std::string out = "Rows, predicted against measured (errors of time or bytes: + is too slow or too large)\n" +
                    rows_text(p) + "\nEfficiencies\n" + efficiencies_text(p);
  out += "\nStep time error of the rows fitted to (" + std::to_string(p.now.rows) + ")\n";
  const auto add = [&](const std::string& what, const plan::ErrorSummary& summary) {
    out += "  " + padded(what, -44) + summary_text(summary) + "\n";
  };
  const auto add_apart = [&](const std::string& what, const plan::ErrorSummary& now, const plan::ErrorSummary& after) {
    if (now.rows == 0) return;
    add(what + " (" + std::to_string(now.rows) + "), now", now);
    add(what + ", with the fit", after);
  };
  add("as planned now", p.now);
  add("held out: each predicted without it", p.held_out);
  add("fitted to", p.fitted);
  add_apart("your rows marked as held out", p.apart_now, p.apart_fitted);
  add_apart("the program's held-out rows", p.shipped_now, p.shipped_fitted);
  for (const Problem& note : p.notes) out += "\n" + to_string(note.severity) + ": " + to_text(note);
  return out + (p.notes.empty() ? "" : "\n");
}

Json calibrated_json(const CalibrationResult& calibrated) {
  Json out = calibrated.proposal ? plan::to_json(*calibrated.proposal) : Json::object();
  const auto all = [](const std::vector<Problem>& problems) {
    Json list = Json::array();
    for (const Problem& p : problems)
      list.push_back({{"id", p.id},
                      {"severity", to_string(p.severity)},
                      {"message", to_text(p)},
                      {"file", p.file},
                      {"place", p.place},
                      {"fix", p.fix}});
    return list;
  };
  out["notes"] = calibrated.proposal ? all(calibrated.proposal->notes) : Json::array();
  out["problems"] = all(calibrated.problems);
  return out;
}

}  // namespace mw::audit
