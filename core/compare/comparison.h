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
#include "core/hardware/catalogue.h"
#include "core/store/store.h"
#include "core/views/run_view.h"
#include "core/views/sweep_view.h"

namespace mw::compare {

struct ComparedRun {  // one column
  store::RunId id{};  // empty for a file or a shipped set
  std::string name{};
  formats::Provenance provenance = formats::Provenance::measured;
  experiment::Experiment experiment{};      // empty document for an import
  std::optional<views::SweepView> sweep{};  // set for a sweep
  std::optional<views::RunView> training{};
  bool has_all_settings = true;       // false for an import whose document contains only some of its settings
  std::filesystem::path file{};       // of a set; empty: a run
  Json explained{};                   // of a replay: read by replay_rows(); null: none
  std::optional<double> train_usd{};  // cost of training the served model; a set may contain it, too (train_usd)
};
ComparedRun compared(formats::BenchSet set);  // a set of a file or a shipped set

enum class ComparedKind { serving, training, sizing };  // only runs of one kind have results in common
ComparedKind kind_of(const ComparedRun& run);
// The names of the runs as columns, charts and texts show them; equal names are told apart by the settings that differ.
std::vector<std::string> distinct_names(const std::vector<ComparedRun>& runs);

// Returns one column per set in the file. Throws BENCH or BENCH-KIND.
std::vector<ComparedRun> compared_files(const std::filesystem::path& file, const hardware::Catalogue& catalogue);
// Audits a set, including physical lower bounds if the catalogue has its model and target.
std::vector<serve::Finding> audit_known(const formats::BenchSet& set, const hardware::Catalogue& catalogue);
// Reads a run of the store with all its events; throws RUN-UNKNOWN.
ComparedRun compared(const store::Store& store, const store::RunId& run);

enum class Fairness { fair, confounded, meaningless };
std::string_view verdict_text(Fairness verdict);  // "comparable", "confounded", "not comparable"
struct Confounder {
  std::string key{};   // "kv_dtype", "loss_mask", "definitions.tpot", "prefix_cache", "requests" ...
  std::string text{};  // one sentence
  Fairness at_least = Fairness::confounded;
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
  size_t recorded() const;  // number of columns with a value
};

struct Comparison {
  std::vector<std::string> names{};
  Fairness verdict = Fairness::fair;
  std::vector<Confounder> confounders{};  // most severe first
  std::vector<ComparisonRow> rows{};      // settings that differ, then results
};
Comparison compare(const std::vector<ComparedRun>& runs);  // throws Error COMPARE for fewer than two

std::string change_text(double delta);  // "+1.2 %", "-96 %", "+2.6e-05 %", "="

// {rows: [{key, values, delta}], warnings: [...], verdict}, as printed by `compare --json`.
Json to_json(const Comparison& comparison);
std::string to_csv(const Comparison& comparison);
std::string to_markdown(const Comparison& comparison);
std::string to_latex(const Comparison& comparison);

}  // namespace mw::compare

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::compare::Fairness>{"fair", "confounded", "meaningless"};
