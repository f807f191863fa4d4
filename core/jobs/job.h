// SPDX-License-Identifier: Apache-2.0
// One run on its own worker thread: freezes the experiment, trains (sizes, sweeps), appends every event to the store
// and hands it to the sink (called on the worker thread; a window pushes it into a Mailbox).
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/experiment/experiment.h"
#include "core/jobs/sweep_run.h"
#include "core/store/run_outcome.h"
#include "core/store/store.h"

namespace mw::jobs {

struct JobRequest {
  experiment::Experiment experiment;  // frozen copy
  std::filesystem::path runs_folder;
  std::optional<store::RunId> resume;  // continue this run from its last checkpoint; experiment is then the run's own
  // "key=value" for the rest of it: mesh.*, sharding.*, target.* only; of a sweep its own sweep.url, with credentials.
  std::vector<std::string> resume_sets = {};
  hardware::LoadCatalogue catalogue = {};  // called by sweeps alone; they need it
  std::function<void(const store::RunId&)> on_run =
      {};  // called once, when the store has the run and before its first event
};

class Job {
 public:
  // Returns at once; failures arrive as a Finished event with state failed. run() is set before the first event.
  Job(JobRequest request, EventSink sink);
  ~Job();  // requests stop and joins
  void pause();
  void resume();
  void stop();  // cancelled: keeps what was done, writes a checkpoint
  bool finished() const;
  store::RunId run() const;  // empty until the store has the run
  void wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The same on the calling thread, for the command line.
store::RunOutcome run_blocking(const JobRequest& request, const EventSink& sink, std::stop_token stop);

}  // namespace mw::jobs
