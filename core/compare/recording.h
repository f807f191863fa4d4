// SPDX-License-Identifier: Apache-2.0
// Recorded requests and the known configuration of their server: the input of a replay. Thread-safe.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "core/compare/comparison.h"
#include "core/experiment/experiment.h"
#include "core/formats/results/bench_result.h"
#include "core/jobs/sweep_run.h"
#include "core/serve/load/replay_steps.h"

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

// Simulates a sweep of this engine from its recorded step times. Each load uses first the times recorded during that
// load, so that it follows the speed of the machine at that time. Not thread-safe.
class RecordedSteps {
 public:
  // Returns empty if the recording has too few steps, or if `server` differs from the recorded processor, model, type
  // or adapters, because its steps would then take other times. Throws the Errors of engine_server().
  static std::optional<RecordedSteps> of(const Recording& recording, const experiment::Experiment& server);

  jobs::BackendParts parts();  // call once; the backend uses the speed set by take_speed_of()
  // Sets the speed of the next load to that of the recorded point.
  void take_speed_of(const formats::BenchPoint& point, const serve::Load& load);

 private:
  RecordedSteps(std::vector<formats::TimedStep> steps, model::Config config, serve::SchedulerSettings settings);

  std::vector<formats::TimedStep> steps_of_all_;
  serve::MeasuredStepModel model_;
  serve::SchedulerSettings settings_;
  std::unique_ptr<serve::ReplayExecutor> made_;
  serve::ReplayExecutor* executor_;  // owned by `made_`, or by the backend after parts()
  double seconds_ = 0, steps_ = 0;   // time and number of the steps that the model was fitted to
};

}  // namespace mw::compare
