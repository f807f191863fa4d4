// SPDX-License-Identifier: Apache-2.0
#include "core/report/report.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/compare/audited_training.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "core/formats/results/bench_import.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/present/html.h"
#include "core/report/report_charts.h"
#include "core/store/run_settings.h"

namespace mw::report {
namespace {

using compare::ComparedRun;
using compare::ComparisonRow;
using namespace present;

// Texts of a value of the Started event: a text, or "name value, name value" of an object.
std::string info_text(const ReportItem& item, const char* key) {
  if (!item.run.training) return {};
  const Json* value = find_member(item.run.training->info(), key);
  if (!value) return {};
  if (value->is_string()) return value->get<std::string>();
  std::vector<std::string> parts;
  for (const auto& [name, part] : value->items())
    if (part.is_string() || part.is_number())
      parts.push_back(name + " " + (part.is_string() ? part.get<std::string>() : part.dump()));
  return joined(parts);
}

Table results_table(const compare::Comparison& comparison, const std::vector<ReportItem>& items) {
  compare::Comparison results = comparison;
  std::erase_if(results.rows, [](const ComparisonRow& row) { return row.kind != ComparisonRow::Kind::result; });
  Table table = table_of(results);
  table.columns.front().title = "Result";
  for (size_t c = 0; c < items.size(); ++c)
    table.columns[c + 1].title = (items.size() == 1 ? std::string("Value") : comparison.names[c]) + ", " +
                                 std::string(formats::to_string(items[c].run.provenance));
  for (Row& row : table.rows)
    if (row.key.ends_with(".capacity_at_slo"))
      for (Cell& cell : row.cells) cell.note = cell.remark;
  return table;
}

// The predicted memory that a run recorded, beside what it measured.
std::vector<ReportFigure> predicted_figures(const ReportItem& item) {
  std::vector<ReportFigure> figures = item.predicted;
  if (item.run.training && figures.empty())
    if (const std::optional<Ledger> ledger = item.run.training->predicted())
      figures.push_back({"Peak memory of the fullest device", to_text(ledger->total())});
  return figures;
}

std::string predicted_section(const std::vector<ReportItem>& items, const std::vector<std::string>& names) {
  std::string out;
  for (size_t c = 0; c < items.size(); ++c) {
    Table table{.columns = {{"Predicted"}, {"Value"}}};
    for (const ReportFigure& figure : predicted_figures(items[c])) table.add({figure.label, figure.text});
    if (table.rows.empty()) continue;
    out += (items.size() > 1 ? html_heading(3, names[c]) : "") + html_table(table);
  }
  return out;
}

struct SettingRow {
  std::string label, key;
  std::vector<std::string> texts;
  bool differs = false;
};

// Returns the recorded settings. Those that differ between the columns (if there is one: from the defaults) come first.
std::vector<SettingRow> setting_rows(const std::vector<ReportItem>& items) {
  const store::RunSettings defaults = store::settings_of(experiment::Experiment());
  std::vector<store::RunSettings> all;
  for (const ReportItem& item : items) all.push_back(store::settings_of(item.run.experiment));
  const auto recorded = [&](size_t c, const std::string& key) {
    const ComparedRun& run = items[c].run;
    return (run.has_all_settings && !run.experiment.json().empty()) || run.experiment.has(key);
  };
  std::vector<SettingRow> rows;
  for (const auto& [key, fallback] : defaults) {
    const experiment::Parameter* parameter = experiment::find_parameter(key);
    SettingRow row{.label = parameter ? parameter->label : "Mesh", .key = key, .texts = {}};
    if (parameter && !parameter->unit.empty()) row.label += " (" + parameter->unit + ")";
    for (size_t c = 0; c < items.size(); ++c) row.texts.push_back(recorded(c, key) ? all[c].at(key) : std::string());
    row.differs = items.size() == 1 ? row.texts[0] != fallback
                                    : std::any_of(row.texts.begin(), row.texts.end(),
                                                  [&](const std::string& text) { return text != row.texts[0]; });
    if (std::any_of(row.texts.begin(), row.texts.end(), [](const std::string& text) { return !text.empty(); }))
      rows.push_back(std::move(row));
  }
  return rows;
}

std::string settings_section(const std::vector<ReportItem>& items, const std::vector<std::string>& names) {
  Table differing{.columns = {{"Setting"}}};
  for (const std::string& name : names) differing.columns.push_back({items.size() == 1 ? "Value" : name});
  Table equal = differing;
  for (const SettingRow& row : setting_rows(items)) {
    std::vector<Cell> cells{row.label};
    cells.front().note = row.key;
    for (const std::string& text : row.texts) {
      cells.emplace_back(text.empty() ? "\u2013" : text);
      if (row.differs && items.size() > 1 && text != row.texts[0]) cells.back().mark = Mark::differs;
    }
    (row.differs ? differing : equal).add(std::move(cells));
  }
  // Sets of results have conditions instead of settings.
  std::vector<std::string> conditions;
  for (size_t c = 0; c < items.size(); ++c)
    if (items[c].run.sweep)
      for (const auto& [key, value] : items[c].run.sweep->set.conditions)
        conditions.push_back((items.size() > 1 ? names[c] + ": " : "") + key + " " + value);
  std::string out = html_table(differing);
  if (!equal.rows.empty())
    out +=
        html_details(items.size() == 1 ? "Settings with their default" : "Settings that are equal", html_table(equal));
  if (!conditions.empty()) out += html_heading(3, "Recorded conditions") + html_list(conditions);
  return out;
}

std::vector<std::string> problems_of(const ReportItem& item) {
  std::vector<std::string> out;
  for (const Problem& problem : item.problems) out.push_back(to_string(problem.severity) + ": " + to_text(problem));
  const auto findings = [&](const std::vector<audit::AuditFinding>& list) {
    for (const audit::AuditFinding& finding : list)
      if (finding.verdict != audit::Verdict::fine)
        out.push_back(std::string(to_string(finding.verdict)) + ": " + finding.text);
  };
  findings(item.run.training_findings);
  if (item.run.sweep) {
    findings(item.run.sweep->findings);
    for (const std::string& note : item.run.sweep->set.notes) out.push_back("note: " + note);
    for (const formats::BenchPoint& point : item.run.sweep->set.points)
      if (!point.note.empty()) out.push_back("note: " + point.note);
  }
  if (item.run.training)
    for (const views::LogLine& line : item.run.training->log())
      if (line.level == "warning" || line.level == "error") out.push_back(line.level + ": " + line.text);
  if (item.row && !item.row->error.empty()) out.push_back("error: " + item.row->error);
  return out;
}

std::string problems_section(const std::vector<ReportItem>& items, const compare::Comparison& comparison) {
  std::vector<std::string> all;
  for (const compare::Confounder& confounder : comparison.confounders) all.push_back(confounder.text);
  for (size_t c = 0; c < items.size(); ++c)
    for (const std::string& text : problems_of(items[c]))
      all.push_back(items.size() > 1 ? comparison.names[c] + ": " + text : text);
  std::string out;
  if (items.size() > 1) out += html_paragraph("Verdict: " + std::string(verdict_text(comparison.verdict)) + ".");
  return out + (all.empty() ? html_paragraph("None was found.") : html_list(all));
}

std::string source_of(const ReportItem& item) {
  if (!item.run.file.empty()) return item.run.file.filename().string();
  if (item.run.sweep && item.run.id.empty()) return item.run.sweep->set.source;
  return item.run.id;
}

std::string provenance_section(const std::vector<ReportItem>& items, const std::vector<std::string>& names,
                               const std::string& written) {
  Table table{.columns = {{"Provenance"}}};
  for (const std::string& name : names) table.columns.push_back({items.size() == 1 ? "Value" : name});
  const auto add = [&](const char* label, auto text) {
    std::vector<Cell> cells{label};
    bool known = false;
    for (const ReportItem& item : items) {
      const std::string value = text(item);
      known = known || !value.empty();
      cells.emplace_back(value.empty() ? "\u2013" : value);
    }
    if (known) table.add(std::move(cells));
  };
  const auto of_row = [](auto value) {
    return [value](const ReportItem& item) { return item.row ? value(*item.row) : std::string(); };
  };
  add("Origin of the numbers",
      [](const ReportItem& item) { return std::string(formats::to_string(item.run.provenance)); });
  add("Run or file", source_of);
  add("Created", of_row([](const store::RunRow& row) { return row.created; }));
  add("State", of_row([](const store::RunRow& row) { return std::string(to_string(row.state)); }));
  add("Duration",
      of_row([](const store::RunRow& row) { return row.seconds > 0 ? to_text(Seconds(row.seconds)) : std::string(); }));
  add("Tool", [](const ReportItem& item) {
    return item.run.sweep ? item.run.sweep->set.tool : info_text(item, item.run.id.empty() ? "software" : "tool");
  });
  add("Versions", [](const ReportItem& item) { return info_text(item, "versions"); });
  add("Machine", [](const ReportItem& item) {
    const std::string machine = info_text(item, "device");
    if (!machine.empty()) return machine;
    if (item.run.sweep && !item.run.sweep->set.target.empty()) return item.run.sweep->set.target;
    return item.run.experiment.has("target.id") ? store::settings_of(item.run.experiment).at("target.id")
                                                : std::string();
  });
  add("Tags", of_row([](const store::RunRow& row) { return row.tags; }));
  return html_table(table) + html_paragraph("Written by Meshwright " MW_VERSION ", " + written + ".");
}

std::string section(const char* title, const std::string& html) {
  return html.empty() ? std::string() : "<section>\n" + html_heading(2, title) + html + "</section>\n";
}

// "8.6 s (7.4 to 9.9)"; empty if nothing is known.
std::string estimate_text(const plan::Estimate& estimate, const char* unit) {
  if (estimate.value <= 0) return {};
  const std::string text = number_text(estimate.value) + " " + unit;
  if (estimate.low >= estimate.high) return text;
  return text + " (" + number_text(estimate.low) + " to " + number_text(estimate.high) + ")";
}

void add_plan(const plan::ExperimentPlan& planned, ReportItem& item) {
  const plan::Plan& p = planned.plan;
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) item.predicted.push_back({label, text});
  };
  add("Target", planned.request.target.id + ", " + counted(p.devices, "device"));
  add("Fits", p.fits() ? "yes" : "no");
  if (!p.refusals.empty()) return;  // no figure of a run that does not start
  add("Peak memory of a device", to_text(p.memory.at_peak.total()) + " of " + to_text(p.memory.capacity));
  for (const MemoryCategory category : all_values<MemoryCategory>())
    if (const Bytes held = p.memory.at_peak[category]; held.value > 0)
      item.predicted.push_back({std::string(to_string(category)) + " at the peak", to_text(held)});
  add("Step", estimate_text(p.step.seconds, "s"));
  if (planned.request.work == plan::Work::train) add("Steps", std::to_string(p.run.steps));
  add("Run", estimate_text(p.run.hours, "h"));
  add("Cost", estimate_text(p.run.usd, "USD"));
  add("Throughput", estimate_text({.value = p.run.tokens_per_second}, "tokens/s"));
  if (!p.serve) return;
  add("TTFT of one request", estimate_text(p.serve->ttft * 1e3, "ms"));
  add("TPOT, beside the prompts of others", estimate_text(p.serve->tpot * 1e3, "ms"));
  add("Step that only decodes", estimate_text(p.serve->decode_step * 1e3, "ms"));
  add("Price of an hour", estimate_text({.value = p.run.usd_per_hour}, "USD"));
  add("Price of a million output tokens", estimate_text({.value = p.serve->usd_per_million_output_tokens}, "USD"));
  add("Output throughput", estimate_text({.value = p.serve->output_tokens_per_second}, "tokens/s"));
}

}  // namespace

std::string html_report(const std::vector<ReportItem>& items, const std::string& written) {
  if (items.empty()) throw Error("COMPARE", "a report needs a run", {.found = "0", .expected = "1 or more"});
  std::vector<ComparedRun> runs;
  for (const ReportItem& item : items) runs.push_back(item.run);
  const compare::Comparison comparison = runs.size() == 1 ? compare::results_of(runs[0]) : compare::compare(runs);
  const std::vector<std::string>& names = comparison.names;
  const std::string title = runs.size() == 1 ? names[0] : "Comparison of " + counted(runs.size(), "run");
  std::string body = html_heading(1, title) + "<p>";
  for (size_t c = 0; c < items.size(); ++c)
    body += (items.size() > 1 ? escape_html(names[c]) + " " : "") +
            html_badge(formats::to_string(items[c].run.provenance)) + "\n";
  body += "</p>\n";
  const bool is_plan = runs.size() == 1 && runs[0].id.empty() && !runs[0].sweep;  // nothing has run
  if (!is_plan) body += section("Results", html_table(results_table(comparison, items)));
  body += section("Predicted", predicted_section(items, names));
  body += section("Charts", report_charts(runs, names));
  body += section("Problems", problems_section(items, comparison));
  body += section("Settings", settings_section(items, names));
  body += section("Provenance", provenance_section(items, names, written));
  return html_document(title, body);
}

ReportItem report_item(const store::Store& store, const store::RunId& run, const plan::PlanContext& context) {
  ReportItem item{.run = compare::compared(store, run), .row = store.find(run)};
  compare::add_audit(item.run, context);
  return item;
}

ReportItem report_item(const experiment::Experiment& experiment, const plan::PlanContext& context,
                       const std::stop_token& stop) {
  ReportItem item{.run = {.name = experiment.valid_values().name,
                          .provenance = formats::ResultProvenance::predicted,
                          .experiment = experiment,
                          .training = views::RunView()}};
  if (item.run.name.empty()) item.run.name = "experiment";
  const plan::ExperimentPlan planned = plan::plan_experiment(experiment, context, plan::ReadData::yes, stop);
  if (stop.stop_requested()) throw cancelled("the plan");  // not all of its fixes were looked for
  for (const plan::Diagnostic& d : planned.diagnosis.found) item.problems.push_back(d.problem);
  add_plan(planned, item);
  if (experiment.valid_values().kind == experiment::Kind::train && planned.plan.refusals.empty())
    item.run = compare::compared_plan(experiment, context);
  return item;
}

std::vector<ReportItem> report_items(const std::filesystem::path& file, const plan::PlanContext& context,
                                     const std::stop_token& stop) {
  if (file.extension() == ".json" && formats::bench_kind(file) == formats::BenchKind::none)
    return {report_item(experiment::Experiment::load(file), context, stop)};
  std::vector<ReportItem> items;
  for (ComparedRun& run : compare::compared_files(file, context)) items.push_back({.run = std::move(run)});
  return items;
}

}  // namespace mw::report
