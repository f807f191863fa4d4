// SPDX-License-Identifier: GPL-3.0-or-later
// `import`: results and training logs of other tools as finished runs. All files are read before the store is touched.
#include <cstdio>

#include "app/commands.h"
#include "app/result_files.h"
#include "core/import/import_files.h"

namespace mw::app {

formats::CsvMapping mapping_of(const std::vector<std::string>& columns) {
  formats::CsvMapping mapping;
  for (const std::string& column : columns) {
    const size_t equals = column.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == column.size())
      throw Error({.id = "USAGE",
                   .message = "a column's mapping needs both names",
                   .place = "--column",
                   .found = column,
                   .expected = "FIELD=COLUMN, e.g. median_ttft_ms=TTFT"});
    mapping.columns[column.substr(0, equals)] = column.substr(equals + 1);
  }
  return mapping;
}

int import_command(const Common& common, const ImportArgs& args) {
  const auto imported = importing::import_files(common.runs_folder, args.files, mapping_of(args.columns));
  if (common.output == Output::json) {
    Json ids = Json::array();
    for (const importing::ImportResult& run : imported) ids.push_back(run.run);
    print_json({{"runs", ids}});
    return 0;
  }
  for (const importing::ImportResult& run : imported)
    print_text("%s  %s: %zu %s of %s\n", run.run.c_str(), run.name.c_str(), run.values ? run.values : run.points,
               run.values ? "values" : "points", run.tool.c_str());
  return 0;
}

}  // namespace mw::app
