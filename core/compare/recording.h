// SPDX-License-Identifier: Apache-2.0
// Recorded requests and the known configuration of their server: the input of a replay. Thread-safe.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/experiment/experiment.h"
#include "core/formats/results/bench_result.h"

namespace mw::compare {

struct Recording {
  formats::BenchSet set{};          // only points with recorded requests
  experiment::Experiment server{};  // known settings: target, mesh, KV type, caches
  int shared_prefix = 0;            // tokens at the start of every prompt
  int shared_prefixes = 1;          // different ones
  size_t summaries = 0;             // number of omitted points without recorded requests
  long requests() const;
  std::optional<size_t> index_of(const formats::BenchPoint& point) const;  // by its load
};

// Returns the server configuration as a document: that of the run, else of the set, completed from its conditions.
experiment::Experiment server_of(const ComparedRun& run);
// Returns whether any point has recorded requests.
bool has_requests(const ComparedRun& run);
// Throw REPLAY if no point has recorded requests. A file contains detailed results, or a workload
// (serve::read_workload) with only lengths and arrival times.
Recording recording_of(const ComparedRun& run);
Recording recording_of(const std::filesystem::path& file);

}  // namespace mw::compare
