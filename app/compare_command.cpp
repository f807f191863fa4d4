// SPDX-License-Identifier: GPL-3.0-or-later
// `compare`: runs of the store and files of results side by side, the first as baseline.
#include <algorithm>
#include <cstdio>

#include "app/commands.h"
#include "core/base/files.h"
#include "core/compare/compared_files.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void usage(const std::string& message, const std::string& found, const std::string& expected) {
  throw Error({.id = "USAGE", .message = message, .found = found, .expected = expected});
}

std::vector<compare::ComparedRun> columns_of(const Common& common, const CompareArgs& args) {
  store::Store store(common.runs_folder);
  const hardware::Catalogue catalogue = load_catalogue();
  std::vector<compare::ComparedRun> columns;
  for (const std::string& name : args.runs) {
    if (store.find(name)) {
      columns.push_back(compare::compared(store, name));
    } else if (is_file(name)) {
      for (compare::ComparedRun& column : compare::compared_files(name, catalogue))
        columns.push_back(std::move(column));
    } else {
      throw Error({.id = "RUN-UNKNOWN",
                   .message = "no run or file has this name",
                   .file = store.folder().string(),
                   .found = name,
                   .expected = "an id as `runs` lists it, or a file of results"});
    }
  }
  for (compare::ComparedRun& column : columns)
    if (column.sweep) column.sweep->findings = compare::audit_known(column.sweep->set, catalogue);
  if (args.train_usd.size() > columns.size())
    usage("--train-usd has more values than there are columns", std::to_string(args.train_usd.size()),
          "at most " + std::to_string(columns.size()));
  for (size_t i = 0; i < args.train_usd.size(); ++i)
    if (args.train_usd[i] > 0) columns[i].train_usd = args.train_usd[i];
  if (!args.baseline.empty()) {
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const compare::ComparedRun& c) {
      return c.id == args.baseline || c.name == args.baseline;
    });
    if (found == columns.end()) usage("the baseline is none of them", args.baseline, "a run or the name of a column");
    std::rotate(columns.begin(), found, std::next(found));
  }
  return columns;
}

void write(const CompareArgs& args, const compare::Comparison& comparison,
           const std::vector<compare::ComparedRun>& columns) {
  const fs::path& file = args.out;
  const std::string kind = file.extension().string();
  if (kind == ".csv")
    write_file_atomically(file, to_csv(comparison));
  else if (kind == ".md")
    write_file_atomically(file, to_markdown(comparison));
  else if (kind == ".tex")
    write_file_atomically(file, to_latex(comparison));
  else if (kind == ".json")
    write_file_atomically(file, to_json(comparison).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  else if (args.picture && (kind == ".pdf" || kind == ".png" || kind == ".svg"))
    args.picture(columns, file);
  else
    usage("a comparison cannot be written as this", kind.empty() ? file.string() : kind,
          args.picture ? ".csv, .md, .tex, .json, .pdf, .png or .svg"
                       : ".csv, .md, .tex or .json (this build has no window that paints)");
}

void print(const compare::Comparison& comparison) {
  print_text("verdict: %s\n", std::string(to_string(comparison.verdict)).c_str());
  for (const compare::Confounder& c : comparison.confounders) print_text("  - %s\n", c.text.c_str());
  print_text("\n%-44s", "");
  for (const std::string& name : comparison.names) print_text("  %22.22s", name.c_str());
  print_text("\n");
  for (const compare::ComparisonRow& row : comparison.rows) {
    print_text("%-44.44s", (row.unit.empty() ? row.label : row.label + " (" + row.unit + ")").c_str());
    for (size_t c = 0; c < row.texts.size(); ++c) {
      std::string text = row.texts[c].empty() ? "-" : row.texts[c];
      if (row.deltas[c]) text += "  " + compare::change_text(*row.deltas[c]);
      if (!row.marks[c].empty()) text += row.marks[c].starts_with("impossible") ? " !!" : " ?";
      print_text("  %22.22s", text.c_str());
    }
    print_text("\n");
  }
  for (const compare::ComparisonRow& row : comparison.rows)
    for (size_t c = 0; c < row.marks.size(); ++c)
      if (row.marks[c].starts_with("impossible"))
        print_text("!! %s, %s: %s\n", comparison.names[c].c_str(), row.label.c_str(), row.marks[c].c_str());
}

}  // namespace

int compare_command(const Common& common, const CompareArgs& args) {
  const std::vector<compare::ComparedRun> columns = columns_of(common, args);
  const compare::Comparison comparison = compare::compare(columns);
  if (!args.out.empty()) write(args, comparison, columns);
  if (common.output == Output::json)
    print_json(to_json(comparison));
  else if (args.out.empty())
    print(comparison);
  else
    print_text("%s\n", args.out.c_str());
  return 0;
}

}  // namespace mw::app
