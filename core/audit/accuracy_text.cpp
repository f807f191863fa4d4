// SPDX-License-Identifier: Apache-2.0
// Text, JSON and Markdown of the accuracy of predictions.

#include "core/audit/accuracy.h"
#include "core/audit/calibrating.h"
#include "core/base/text.h"
#include "core/present/table.h"

namespace mw::audit {
namespace {

std::string use_text(plan::MeasurementUse use) {
  return use == plan::MeasurementUse::calibration ? "calibration" : "holdout";
}

std::string coverage_text(const AccuracyGroup& g) {
  if (g.with_interval == 0) return "-";
  return std::to_string(g.inside) + " of " + std::to_string(g.with_interval) + " (" + tenths_text(g.coverage()) + ")";
}

std::string apart_text(const AccuracyGroup& g) {
  if (g.with_interval == 0) return "-";
  return tenths_text(static_cast<double>(g.inside_apart) / g.with_interval) + ", " + tenths_text(g.median_width_apart);
}

std::string kind_text(const AccuracyGroup& g) {
  return std::string(to_string(g.kind)) + (g.vendor ? ", " + vendor_text(*g.vendor) : "") +
         (g.stable_only ? ", stable load" : "");
}

using present::Cell;
using present::Table;

Table table_with(const std::vector<const char*>& names, const std::vector<const char*>& figures) {
  Table table = present::left_table(names);
  for (const char* title : figures) table.columns.push_back({.title = title});
  return table;
}

void add_group(std::vector<Cell> cells, const AccuracyGroup& g, Table& table) {
  for (const std::string& text : {std::to_string(g.rows), std::to_string(g.refused), tenths_text(g.mean),
                                  tenths_text(g.median), tenths_text(g.worst), std::to_string(g.off), coverage_text(g),
                                  g.with_interval > 0 ? tenths_text(g.median_width) : std::string("-"), apart_text(g)})
    cells.emplace_back(text);
  table.add(std::move(cells));
}

struct AccuracyTables {
  Table totals, groups, rows;
};

AccuracyTables tables_of(const AccuracyReport& report) {
  const std::vector<const char*> figures{"rows",
                                         "refused",
                                         "mean error",
                                         "median",
                                         "worst",
                                         "off by > 30 %",
                                         "inside the interval",
                                         "median width",
                                         "both without the publication"};
  AccuracyTables t{table_with({"kind", "use"}, figures), table_with({"kind", "stack", "chip", "use"}, figures),
                   table_with({"row", "use", "stack", "chip"},
                              {"measured", "predicted", "unit", "error", "90 % interval", "inside"})};
  for (const AccuracyGroup& g : report.totals) add_group({kind_text(g), use_text(g.use)}, g, t.totals);
  for (const AccuracyGroup& g : report.groups) add_group({kind_text(g), g.stack, g.chip, use_text(g.use)}, g, t.groups);
  for (const AccuracyRow& r : report.rows)
    t.rows.add({r.id + (r.counted ? "" : " (alternative)"), use_text(r.use), r.stack, r.chip, number_text(r.measured),
                r.refused.empty() ? number_text(r.predicted) : "-", r.unit, error_text(r), interval_text(r),
                !r.refused.empty()  ? "refused"
                : !r.has_interval() ? "-"
                : r.is_inside()     ? "yes"
                                    : "no"});
  return t;
}

std::string basis_text(const AccuracyReport& report) {
  return "Made " + report.date + " with the calibration: " + report.calibration + ".";
}

std::string part_text(const IntervalSummary::Part& part) {
  const double share = part.rows > 0 ? static_cast<double>(part.inside) / part.rows : 0;
  return std::to_string(part.inside) + " of " + std::to_string(part.rows) + " inside (" + tenths_text(share) +
         "), median width " + tenths_text(part.median_width);
}

std::string intervals_text(const IntervalSummary& s) {
  return "90 % intervals of held-out rows of all kinds: " + part_text(s.all) +
         "; on chips with rows for calibration: " + part_text(s.calibrated_chips) + ".";
}

Json part_json(const IntervalSummary::Part& part) {
  return {{"rows", part.rows}, {"inside", part.inside}, {"median_width", part.median_width}};
}

Json group_json(const AccuracyGroup& g) {
  Json out{{"kind", to_string(g.kind)}, {"use", use_text(g.use)}};
  if (!g.stack.empty()) out["stack"] = g.stack, out["chip"] = g.chip;
  if (g.vendor) out["vendor"] = *g.vendor == hardware::Vendor::tpu ? "tpu" : "gpu";
  if (g.stable_only) out["load"] = "stable";
  out["rows"] = g.rows;
  out["refused"] = g.refused;
  out["off"] = g.off;
  out["mean_error"] = g.mean;
  out["median_error"] = g.median;
  out["worst_error"] = g.worst;
  out["worst_row"] = g.worst_row;
  out["with_interval"] = g.with_interval;
  out["inside"] = g.inside;
  out["coverage"] = g.with_interval > 0 ? Json(g.coverage()) : Json(nullptr);
  out["median_width"] = g.with_interval > 0 ? Json(g.median_width) : Json(nullptr);
  out["inside_without_publication"] = g.inside_apart;
  out["median_width_without_publication"] = g.with_interval > 0 ? Json(g.median_width_apart) : Json(nullptr);
  return out;
}

Json row_json(const AccuracyRow& r) {
  Json out{{"id", r.id},           {"use", use_text(r.use)}, {"kind", to_string(r.kind)},
           {"stack", r.stack},     {"chip", r.chip},         {"target", r.target},
           {"model", r.model},     {"unit", r.unit},         {"measured", r.measured},
           {"predicted", nullptr}, {"error", nullptr},       {"inside", nullptr},
           {"counted", r.counted}, {"source", r.source}};
  if (r.load != ServedLoad::none) out["load"] = to_string(r.load);
  if (!r.refused.empty()) {
    out["refused"] = r.refused;
    return out;
  }
  out["predicted"] = r.predicted;
  out["error"] = r.error;
  if (!r.has_interval()) return out;
  out["low"] = r.low;
  out["high"] = r.high;
  out["inside"] = r.is_inside();
  return out;
}

}  // namespace

std::string vendor_text(hardware::Vendor vendor) {
  return vendor == hardware::Vendor::tpu ? "TPU" : vendor == hardware::Vendor::gpu ? "GPU" : "CPU";
}

std::string interval_text(const AccuracyRow& row) {
  if (!row.refused.empty() || !row.has_interval()) return "-";
  return number_text(row.low, 3) + " to " + number_text(row.high, 3);
}

std::string error_text(const AccuracyRow& row) {
  return row.refused.empty() ? error_text(row.error) : "refused";
}

std::string totals_text(const AccuracyReport& report) {
  return present::to_text(tables_of(report).totals, 2);
}

Json to_json(const AccuracyReport& report) {
  Json out{{"date", report.date}, {"calibration", report.calibration}};
  for (const auto& [name, groups] : {std::pair{"totals", &report.totals}, {"groups", &report.groups}}) {
    out[name] = Json::array();
    for (const AccuracyGroup& g : *groups) out[name].push_back(group_json(g));
  }
  out["held_out_intervals"] = {{"all", part_json(report.intervals.all)},
                               {"calibrated_chips", part_json(report.intervals.calibrated_chips)}};
  out["rows"] = Json::array();
  for (const AccuracyRow& r : report.rows) out["rows"].push_back(row_json(r));
  out["left_out"] = Json::array();
  for (const auto& left : report.left_out) out["left_out"].push_back({{"row", left.row}, {"why", left.why}});
  return out;
}

std::string to_text(const AccuracyReport& report) {
  const AccuracyTables t = tables_of(report);
  std::string out = "Rows (error of time or bytes: + is predicted too slow or too large)\n" +
                    present::to_text(t.rows, 2) + "\nBy kind, stack and chip\n" + present::to_text(t.groups, 2) +
                    "\nBy kind\n" + present::to_text(t.totals, 2) + intervals_text(report.intervals) + "\n";
  for (const AccuracyRow& r : report.rows)
    if (!r.refused.empty()) out += "refused: " + r.id + ": " + r.refused + "\n";
  return out + std::to_string(report.left_out.size()) +
         " published results are left out, because a plan has no such setting.\n" + basis_text(report) + "\n";
}

std::string to_markdown(const AccuracyReport& report) {
  const AccuracyTables t = tables_of(report);
  std::string out =
      "# Every published row, predicted\n\n"
      "Written by `scripts/accuracy.sh`; `meshwright accuracy` prints the same tables. Chapter 11 of the manual has "
      "them in\n"
      "short.\n\n" +
      basis_text(report) +
      "\n\n"
      "Efficiencies are fitted to rows with use calibration only; rows with use holdout are predicted and never "
      "fitted\n"
      "to. The interval of a row here comes from the errors on all rows but those of its own run, so\n"
      "that no row is judged by its own error; it speaks for work like that of the rows. The last\n"
      "column of the first two tables has the share inside and the width of intervals from other publications only, "
      "for "
      "other\n"
      "work. An error is one of time or bytes: + is predicted too slow or too large. A refused row counts as an error "
      "of "
      "100 %.\n"
      "Means leave out rows marked as an alternative, which differ from another row in one assumption.\n\n"
      "## By kind\n\n" +
      present::to_markdown(t.totals) + "\n" + intervals_text(report.intervals) + "\n\n## By kind, stack and chip\n\n" +
      present::to_markdown(t.groups) + "\n## Rows\n\n" + present::to_markdown(t.rows);
  for (const AccuracyRow& r : report.rows)
    if (!r.refused.empty()) out += "\nRefused: " + r.id + ": " + r.refused + "\n";
  out += "\n## Published, but left out\n\n";
  for (const auto& left : report.left_out) out += "- " + left.row + ": " + left.why + "\n";
  return out;
}

}  // namespace mw::audit
