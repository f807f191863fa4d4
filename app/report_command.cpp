// SPDX-License-Identifier: GPL-3.0-or-later
// `report`: a run, the plan of an experiment, or a comparison as one HTML file.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/files.h"
#include "core/report/report.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> items{};
  fs::path out{};
};

void add_report_options(CLI::App& command, CommonOptions&, ReportOptions& options) {
  command
      .add_option("items", options.items, "Runs of the store, files of results, or experiments; several are compared")
      ->required();
  command.add_option("--out", options.out, "File for the report: .html")->required();
}

int run_report(const CommonOptions& common, const ReportOptions& options) {
  if (options.out.extension() != ".html" && options.out.extension() != ".htm")
    throw Error("USAGE", "a report cannot be written in this format",
                {.file = options.out.string(), .found = options.out.extension().string(), .expected = ".html"});
  const store::Store store(common.runs_folder);
  const plan::PlanContext context = load_context();
  std::vector<report::ReportItem> items;
  for (const std::string& name : options.items) {
    check_stop(common, "the report");
    if (const auto row = store.find(run_named(store, name)))
      items.push_back(report::report_item(store, row->id, context));
    else if (is_file(name))
      for (report::ReportItem& item : report::report_items(name, context, common.stop))
        items.push_back(std::move(item));
    else
      throw unknown_run(store.folder(), name, "a run id listed by `runs`, a file of results, or an experiment");
  }
  const std::string html = report::html_report(items, store::now_utc());
  check_stop(common, "the report");
  write_file_atomically(options.out, html);
  print_answer(common, {{"file", options.out.string()}, {"bytes", html.size()}}, options.out.string() + "\n");
  return 0;
}

}  // namespace

Subcommand report_subcommand() {
  return make_subcommand("report", "Write a run, a plan or a comparison as one HTML file", add_report_options,
                         run_report);
}

}  // namespace mw::app
