// SPDX-License-Identifier: Apache-2.0
#include "core/import/import_files.h"

#include <iterator>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/formats/logs/run_log.h"
#include "core/import/bundle.h"
#include "core/import/import_events.h"
#include "core/import/import_log.h"
#include "core/import/import_results.h"

namespace mw::importing {
namespace {

formats::RunLog read_log_with_scalars(const std::filesystem::path& file) {
  formats::RunLog log = formats::read_log(file);
  if (!log.scalars.empty()) return log;
  throw Error({.id = "LOG-EMPTY",
               .message = "the log has no scalar values",
               .file = file.string(),
               .found = log.contents.empty() ? "no values" : joined(log.contents),
               .expected = "at least one scalar, such as a loss",
               .fix = "log scalars per step, or import the file that contains them"});
}

}  // namespace

std::vector<ImportResult> import_files(const std::filesystem::path& runs_folder,
                                       const std::vector<std::filesystem::path>& files,
                                       const formats::CsvMapping& mapping) {
  std::vector<formats::BenchSet> sets;
  std::vector<formats::RunLog> logs;
  std::vector<EventRecord> records;
  std::vector<std::filesystem::path> bundles;
  for (const auto& file : files) {
    if (is_bundle(file)) {
      check_bundle(file);
      bundles.push_back(file);
      continue;
    }
    if (is_event_lines(file)) {
      records.push_back(read_event_lines(file));
      continue;
    }
    if (formats::log_kind(file) != formats::LogKind::none) {
      logs.push_back(read_log_with_scalars(file));
      continue;
    }
    auto more = formats::read_bench(file, mapping);
    std::move(more.begin(), more.end(), std::back_inserter(sets));
  }
  store::Store store(runs_folder);
  std::vector<ImportResult> imported;
  const std::vector<store::RunId> of_sets = import_sets(store, sets);
  for (size_t i = 0; i < sets.size(); ++i)
    imported.push_back({of_sets[i], sets[i].name, sets[i].tool, sets[i].points.size(), 0});
  for (const formats::RunLog& log : logs)
    imported.push_back({import_log(store, log), log.name, log.tool, 0, log.scalars.size()});
  for (const EventRecord& r : records) imported.push_back({import_events(store, r), r.name, r.software, 0, r.values});
  for (const std::filesystem::path& file : bundles) {
    const BundleContents contents = import_bundle(store, file);
    for (size_t i = 0; i < contents.runs.size(); ++i)
      imported.push_back({contents.runs[i], contents.names[i], "a bundle", 0, 0, contents.events_of[i]});
  }
  return imported;
}

}  // namespace mw::importing
