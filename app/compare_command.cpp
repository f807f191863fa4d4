// SPDX-License-Identifier: GPL-3.0-or-later
// `compare`: runs of the store and files of results side by side, with the first one as the baseline.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "app/window.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/compare/attribution.h"
#include "core/compare/audited_training.h"
#include "core/compare/compared_snapshots.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::vector<std::string> runs{};  // ids, or files of results
  std::string baseline;             // id or column name; empty: the first column
  std::vector<double> train_usd{};  // training cost by column
  views::Playhead at{};             // of training runs; none: no snapshots
  fs::path out{};
};

[[noreturn]] void refuse_usage(const std::string& message, const std::string& found, const std::string& expected) {
  throw Error("USAGE", message, {.found = found, .expected = expected});
}

std::vector<compare::ComparedRun> read_columns(const CommonOptions& common, const CompareOptions& options) {
  store::Store store(common.runs_folder);
  const plan::PlanContext context = load_context();
  std::vector<compare::ComparedRun> columns;
  for (const std::string& name : options.runs) {
    check_stop(common, "the comparison");
    if (const auto row = store.find(run_named(store, name))) {
      columns.push_back(compare::compared(store, row->id));
    } else if (is_file(name)) {
      for (compare::ComparedRun& column : compare::compared_files(name, context)) columns.push_back(std::move(column));
    } else {
      throw unknown_run(store.folder(), name, "a run id listed by `runs`, a file of results, or an experiment");
    }
  }
  for (compare::ComparedRun& column : columns) compare::add_audit(column, context);
  return columns;
}

void apply_training_costs(const std::vector<double>& usd, std::vector<compare::ComparedRun>& columns) {
  if (usd.size() > columns.size())
    refuse_usage("--train-usd has more values than there are columns", std::to_string(usd.size()),
                 "at most " + std::to_string(columns.size()));
  for (size_t i = 0; i < usd.size(); ++i)
    if (usd[i] > 0) columns[i].train_usd = usd[i];
}

void move_baseline_to_front(const std::string& baseline, std::vector<compare::ComparedRun>& columns) {
  if (baseline.empty()) return;
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const compare::ComparedRun& column) {
    return column.id == baseline || column.name == baseline;
  });
  if (found == columns.end())
    refuse_usage("the baseline is not among the columns", baseline, "the id of a run or the name of a column");
  std::rotate(columns.begin(), found, std::next(found));
}

void write_comparison(const CommonOptions& common, const fs::path& file, const compare::Comparison& comparison,
                      const std::vector<compare::ComparedRun>& columns) {
  const std::string format = file.extension().string();
  if (format == ".csv")
    write_file_atomically(file, to_csv(comparison));
  else if (format == ".md")
    write_file_atomically(file, to_markdown(comparison));
  else if (format == ".tex")
    write_file_atomically(file, to_latex(comparison));
  else if (format == ".json")
    write_file_atomically(file, dump_utf8(to_json(comparison), 2) + "\n");
  else if (has_window() && (format == ".pdf" || format == ".png" || format == ".svg"))
    paint_comparison(common, columns, file);
  else
    refuse_usage("a comparison cannot be written in this format", format.empty() ? file.string() : format,
                 has_window() ? ".csv, .md, .tex, .json, .pdf, .png or .svg"
                              : ".csv, .md, .tex or .json (this build has no window that paints)");
}

void print_comparison(const compare::Comparison& comparison) {
  print_text("verdict: %s\n", std::string(verdict_text(comparison.verdict)).c_str());
  for (const compare::Confounder& confounder : comparison.confounders) {
    const std::string effects = effects_text(comparison, confounder.effects);
    print_text("  - %s%s%s\n", confounder.text.c_str(), effects.empty() ? "" : "; ", effects.c_str());
  }
  if (comparison.gap && comparison.gap->missing.empty())
    print_text("the gap is that of: %s (%s)\n", comparison.gap->label.c_str(), comparison.gap->unit.c_str());
  print_text("\n%s", present::to_text(table_of(comparison)).c_str());
}

void print_snapshots(const std::vector<compare::RunSnapshot>& snapshots, const std::vector<std::string>& names) {
  const auto number = [](const std::optional<double>& value) { return value ? number_text(*value) : std::string("-"); };
  present::Table table = present::figure_table(
      {"run", "step", "time", "train/loss", "eval/loss", "rate", "norm", "tokens/s", "memory", "moved"});
  for (const compare::RunSnapshot& s : snapshots)
    table.add({names.at(s.column), std::to_string(s.step) + (s.ended ? " (last)" : ""),
               s.time_s ? to_text(Seconds(*s.time_s)) : "-", number(s.loss), number(s.eval_loss),
               number(s.learning_rate), number(s.gradient_norm), number(s.tokens_per_second),
               s.memory ? to_text(*s.memory) : "-", s.moved ? to_text(*s.moved) : "-"});
  print_text("%s", present::to_text(table).c_str());
}

void add_compare_options(CLI::App& command, CommonOptions&, CompareOptions& options) {
  command.add_option("runs", options.runs, "Runs of the store (latest: the newest), files of results, or experiments")
      ->required();
  command.add_option("--baseline", options.baseline, "Run or column that the others are compared with");
  command.add_option("--train-usd", options.train_usd, "Training cost of the model that each column serves, in order")
      ->delimiter(',');
  CLI::Option* step = command.add_option("--at-step", options.at.step, "Show the state of training runs at this step");
  command.add_option("--at-time", options.at.time_s, "Show the state of training runs after so many seconds")
      ->excludes(step);
  command.add_option("--out", options.out, "File for the table: .csv, .md, .tex, .json, .pdf, .png or .svg");
}

int run_compare(const CommonOptions& common, const CompareOptions& options) {
  std::vector<compare::ComparedRun> columns = read_columns(common, options);
  apply_training_costs(options.train_usd, columns);
  move_baseline_to_front(options.baseline, columns);
  compare::Comparison comparison = compare::compare(columns);
  const compare::GapInput input = gap_input(comparison, columns);
  comparison = with_effects(std::move(comparison), input, load_context(), common.stop);
  check_stop(common, "the comparison");
  if (!options.out.empty()) write_comparison(common, options.out, comparison, columns);
  const auto snapshots =
      options.at.live() ? std::vector<compare::RunSnapshot>() : compare::snapshots_at(columns, options.at);
  if (common.output == Output::json) {
    Json json = to_json(comparison);
    if (!options.at.live()) json["snapshots"] = to_json(snapshots, comparison.names);
    print_json(json);
  } else if (!options.at.live())
    print_snapshots(snapshots, comparison.names);
  else if (options.out.empty())
    print_comparison(comparison);
  else
    print_text("%s\n", options.out.c_str());
  return 0;
}

}  // namespace

Subcommand compare_subcommand() {
  return make_subcommand("compare", "Show the differences between runs, and whether they are comparable",
                         add_compare_options, run_compare);
}

}  // namespace mw::app
