// SPDX-License-Identifier: Apache-2.0
// Compares sweeps or training runs with the first run as baseline: differing settings, results with their change, and
// whether the comparison is fair. Thread-safe.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/formats/results/bench_result.h"
#include "core/plan/calibration/plan_context.h"
#include "core/present/table.h"
#include "core/store/store.h"
#include "core/views/run_view.h"
#include "core/views/sweep_view.h"

namespace mw::compare {

struct PlannedRun {  // predicted and, if the document has them, measured figures of a training; 0: unknown
  double step_s = 0, hours = 0, usd = 0;
  double measured_step_s = 0, measured_hours = 0, measured_usd = 0;
};
struct ComparedRun {  // one column
  store::RunId id{};  // empty for a file or a shipped set
  std::string name{};
  formats::ResultProvenance provenance = formats::ResultProvenance::measured;
  experiment::Experiment experiment{};      // empty document for an import
  std::optional<views::SweepView> sweep{};  // set for a sweep
  std::optional<views::RunView> training{};
  bool has_all_settings = true;  // false for an import whose document contains only some of its settings
  std::vector<audit::AuditFinding> training_findings{};  // audit of `training`
  std::optional<PlannedRun> planned{};                   // set for the plan of an experiment
  std::filesystem::path file{};                          // of a set; empty: a run
  Json explained{};                                      // of a replay: read by replay_rows(); null: none
  std::optional<double> train_usd{};  // cost of training the served model; a set may contain it, too (train_usd)
};
ComparedRun compared(formats::BenchSet set);  // a set of a file or a shipped set

enum class ComparedKind { serving, training, sizing };  // only runs of one kind have results in common
ComparedKind kind_of(const ComparedRun& run);
// The names of the runs as columns, charts and texts show them; equal names are told apart by the settings that differ.
std::vector<std::string> distinct_names(const std::vector<ComparedRun>& runs);

// The plan of a training on its target as a column, with what the document says was measured. Throws COMPARE for other
// experiments.
ComparedRun compared_plan(const experiment::Experiment& experiment, const plan::PlanContext& context);
// Returns one column per set in the file, or compared_plan() of an experiment. Throws BENCH or BENCH-KIND.
std::vector<ComparedRun> compared_files(const std::filesystem::path& file, const plan::PlanContext& context);
// Audits a set, including physical lower bounds if the catalogue has its model and target.
std::vector<audit::AuditFinding> audit_known(const formats::BenchSet& set, const plan::PlanContext& context);
// Reads a run of the store with all its events; throws RUN-UNKNOWN.
ComparedRun compared(const store::Store& store, const store::RunId& run);

enum class Fairness { fair, confounded, meaningless };
std::string_view verdict_text(Fairness verdict);  // "comparable", "confounded", "not comparable"

// The predicted effect of one difference in one column: that of the baseline with only this difference changed.
struct Effect {
  double change = 0;              // of the metric of the gap, relative: 0.12
  std::optional<double> share{};  // of the gap; empty if the column differs by less than 1 % from the baseline
};
struct Effects {
  std::vector<std::optional<Effect>> by_column{};  // empty before the estimate; no entry for the baseline
  std::string missing{};                           // why there is no estimate for any column
  bool any() const;                                // whether some column has an estimate
};
struct Confounder {
  std::string key{};   // "kv_dtype", "loss_mask", "definitions.tpot", "prefix_cache", "requests" ...
  std::string text{};  // one sentence
  Fairness at_least = Fairness::confounded;
  Effects effects{};           // set by with_effects()
  bool is_negligible = false;  // changes nothing but speed, and that by less than 1 %: does not confound
};

struct ComparisonRow {
  enum class Kind { setting, result } kind = Kind::setting;
  std::string key{}, label{}, unit{};           // key of a cell: "512/128@4.median_ttft_ms"
  std::vector<std::string> texts{};             // display text by column; empty if not recorded
  std::vector<std::optional<double>> values{};  // results by column
  std::vector<std::optional<double>> deltas{};  // relative to the baseline: -0.96
  enum class Better { lower, higher, neither } better = Better::neither;
  // Audit finding by column, or empty. Begins with "impossible", "suspicious" or "few requests".
  std::vector<std::string> marks{};
  bool differs = true;
  Effects effects{};        // of a setting; set by with_effects()
  size_t recorded() const;  // number of columns with a value
  std::string title() const { return unit.empty() ? label : label + " (" + unit + ")"; }
};

// The result that effects are estimated for, by column.
struct Gap {
  std::string label{}, unit{};  // "speed, median"; "median E2E at 512/128, 4/s"
  std::vector<std::optional<double>> measured{}, predicted{};
  std::string missing{};  // why nothing is estimated
};

struct Comparison {
  std::vector<std::string> names{};
  Fairness verdict = Fairness::fair;
  std::optional<Gap> gap{};               // set by with_effects()
  std::vector<Confounder> confounders{};  // most severe first, then the largest effect
  std::vector<ComparisonRow> rows{};      // settings that differ, then results
};
Comparison compare(const std::vector<ComparedRun>& runs);  // throws Error COMPARE for fewer than two
Comparison results_of(const ComparedRun& run);             // the rows of one run: results without changes

using present::change_text;
// "explains 38 % of gap (+12 % predicted)", by name for more than two columns; "not estimated: ..."; empty before
// the estimate.
std::string effects_text(const Comparison& comparison, const Effects& effects);
// The effect in one column: "38 % of gap", of a small gap "-39 x gap"; empty if none is estimated.
std::string share_text(const Effects& effects, size_t column);

// {rows: [{key, values, delta}], warnings: [...], verdict}, as printed by `compare --json`.
Json to_json(const Comparison& comparison);
// A column for each run; remarks are the audit findings.
present::Table table_of(const Comparison& comparison);
std::string to_csv(const Comparison& comparison);
std::string to_markdown(const Comparison& comparison);
std::string to_latex(const Comparison& comparison);

// Compares training runs step by step. Thread-safe.

// Returns {step, other / baseline - 1} for each step that both report. Omits steps whose baseline is zero or not
// finite.
std::vector<views::Point> step_differences(const views::RunView& baseline, const views::RunView& other,
                                           const std::string& metric);

// Returns the step with the largest difference; y is NaN if there is none.
views::Point furthest_apart(const std::vector<views::Point>& differences);

// Returns the steps that a table shows: all if there are few, else the first ones, then steps at increasing distance,
// and the last.
std::vector<long> steps_to_show(std::vector<long> steps);

}  // namespace mw::compare

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::compare::Fairness>{"fair", "confounded", "meaningless"};
