// SPDX-License-Identifier: GPL-3.0-or-later
// `import`: adds results and training logs of other tools to the run store. All files are read before the store is
// changed.
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/import/import_files.h"

namespace mw::app {
namespace {

struct ImportOptions {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> columns{};  // FIELD=COLUMN of a CSV file
};

void add_import_options(CLI::App& command, CommonOptions&, ImportOptions& options) {
  command.add_option("files", options.files, "Results of serving benchmarks, training logs, or bundles")->required();
  add_column_option(command, options.columns);
}

int run_import(const CommonOptions& common, const ImportOptions& options) {
  const auto imported = importing::import_files(common.runs_folder, options.files, csv_mapping(options.columns));
  if (common.output == Output::json) {
    Json ids = Json::array();
    for (const importing::ImportResult& run : imported) ids.push_back(run.run);
    print_json({{"runs", ids}});
    return 0;
  }
  for (const importing::ImportResult& run : imported)
    print_text("%s  %s: %s from %s\n", run.run.c_str(), run.name.c_str(),
               counted(run.points + run.values + run.events, run.points   ? "point"
                                                             : run.values ? "value"
                                                                          : "event")
                   .c_str(),
               run.tool.c_str());
  return 0;
}

}  // namespace

Subcommand import_subcommand() {
  return make_subcommand("import", "Add serving benchmarks and training logs of other tools to the run store",
                         add_import_options, run_import);
}

}  // namespace mw::app
