// SPDX-License-Identifier: Apache-2.0
// Requests that were recorded somewhere, with what is known of who served them: what a replay plays again. Any thread.
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
  formats::BenchSet set{};          // points that have their requests, no others
  experiment::Experiment server{};  // as far as the source says: target, mesh, KV type, caches
  int shared_prefix = 0;            // tokens at the start of every prompt
  size_t summaries = 0;             // points that say nothing of their requests, left out
  long requests() const;
  std::optional<size_t> index_of(const formats::BenchPoint& point) const;  // by its load
};

// Who served it, as a document: the run's own, or what the set says; conditions fill in what is left out.
experiment::Experiment server_of(const ComparedRun& run);
// Whether any point of it says its requests.
bool has_requests(const ComparedRun& run);
// Throw Error REPLAY where no point says its requests. Files: results with details, or a workload
// (serve::read_workload), whose points have lengths and moments only.
Recording recording_of(const ComparedRun& run);
Recording recording_of(const std::filesystem::path& file);

}  // namespace mw::compare
