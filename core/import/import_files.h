// SPDX-License-Identifier: Apache-2.0
// Imports files of other programs as finished runs of the store: results of serving benchmarks (import_results.h),
// training logs (import_log.h), event lines (import_events.h) and bundles (bundle.h), distinguished by content.
// Thread-safe.
#pragma once
#include "core/formats/results/bench_import.h"
#include "core/store/store.h"

namespace mw::importing {

struct ImportResult {
  store::RunId run;
  std::string name, tool;
  size_t points = 0, values = 0, events = 0;  // points of a benchmark; scalar values of a log; events of a bundle
};

// Reads all files before it opens the store, so an Error in one file imports none of them.
std::vector<ImportResult> import_files(const std::filesystem::path& runs_folder,
                                       const std::vector<std::filesystem::path>& files,
                                       const formats::CsvMapping& mapping = {});

}  // namespace mw::importing
