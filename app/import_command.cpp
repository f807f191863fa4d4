// SPDX-License-Identifier: GPL-3.0-or-later
// `import`: results and training logs of other tools as finished runs. All files are read before the store is touched.
#include <cstdio>
#include <iterator>

#include "app/commands.h"
#include "app/result_files.h"
#include "core/formats/logs/run_log.h"
#include "core/runs/import_log.h"
#include "core/runs/import_results.h"

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
  const formats::CsvMapping mapping = mapping_of(args.columns);
  std::vector<formats::BenchSet> sets;
  std::vector<formats::RunLog> logs;
  for (const auto& file : args.files) {
    if (formats::log_kind(file) != formats::LogKind::none) {
      logs.push_back(formats::read_log(file));
      continue;
    }
    auto more = formats::read_bench(file, mapping);
    std::move(more.begin(), more.end(), std::back_inserter(sets));
  }
  runs::Store store(common.runs_folder);
  const std::vector<runs::RunId> of_sets = runs::import_sets(store, sets);
  std::vector<runs::RunId> ids = of_sets;
  for (const formats::RunLog& log : logs) ids.push_back(runs::import_log(store, log));
  if (common.output == Output::json) {
    print_json({{"runs", ids}});
    return 0;
  }
  for (size_t i = 0; i < of_sets.size(); ++i)
    std::printf("%s  %s: %zu points of %s\n", ids[i].c_str(), sets[i].name.c_str(), sets[i].points.size(),
                sets[i].tool.c_str());
  for (size_t i = 0; i < logs.size(); ++i)
    std::printf("%s  %s: %zu values of %s\n", ids[of_sets.size() + i].c_str(), logs[i].name.c_str(),
                logs[i].scalars.size(), logs[i].tool.c_str());
  return 0;
}

}  // namespace mw::app
