// SPDX-License-Identifier: Apache-2.0
#include "core/runs/import_files.h"

#include <iterator>

#include "core/formats/logs/run_log.h"
#include "core/runs/import_events.h"
#include "core/runs/import_log.h"
#include "core/runs/import_results.h"

namespace mw::runs {

std::vector<Imported> import_files(const std::filesystem::path& runs_folder,
                                   const std::vector<std::filesystem::path>& files,
                                   const formats::CsvMapping& mapping) {
  std::vector<formats::BenchSet> sets;
  std::vector<formats::RunLog> logs;
  std::vector<EventRecord> records;
  for (const auto& file : files) {
    if (is_event_lines(file)) {
      records.push_back(read_event_lines(file));
      continue;
    }
    if (formats::log_kind(file) != formats::LogKind::none) {
      logs.push_back(formats::read_log(file));
      continue;
    }
    auto more = formats::read_bench(file, mapping);
    std::move(more.begin(), more.end(), std::back_inserter(sets));
  }
  Store store(runs_folder);
  std::vector<Imported> imported;
  const std::vector<RunId> of_sets = import_sets(store, sets);
  for (size_t i = 0; i < sets.size(); ++i)
    imported.push_back({of_sets[i], sets[i].name, sets[i].tool, sets[i].points.size(), 0});
  for (const formats::RunLog& log : logs)
    imported.push_back({import_log(store, log), log.name, log.tool, 0, log.scalars.size()});
  for (const EventRecord& r : records) imported.push_back({import_events(store, r), r.name, r.software, 0, r.values});
  return imported;
}

}  // namespace mw::runs
