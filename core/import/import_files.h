// SPDX-License-Identifier: Apache-2.0
// Files of other programs as finished runs of the store: results of serving benchmarks (import_results.h), training
// logs (import_log.h) and event lines (import_events.h), told apart by what is in them. Any one thread.
#pragma once
#include "core/formats/results/bench_import.h"
#include "core/store/store.h"

namespace mw::importing {

struct ImportResult {
  store::RunId run;
  std::string name, tool;
  size_t points = 0, values = 0;  // measured points of a benchmark, or scalars of a log
};

// All files are read before the store is opened: an Error of the third leaves nothing of the first two.
std::vector<ImportResult> import_files(const std::filesystem::path& runs_folder,
                                       const std::vector<std::filesystem::path>& files,
                                       const formats::CsvMapping& mapping = {});

}  // namespace mw::importing
