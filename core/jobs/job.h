// SPDX-License-Identifier: Apache-2.0
// Executes one run (training, sizing or sweep) on a worker thread: copies the experiment, appends every event to the
// store and passes it to the sink, which is called on the worker thread.
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
#include "core/store/store.h"

namespace mw::jobs {

struct JobRequest {
  experiment::Experiment experiment;  // copied into the run
  std::filesystem::path runs_folder;
  std::optional<store::RunId> resume;  // continue this run from its last checkpoint and ignore `experiment`
  // "key=value" changes for the resumed part: only mesh.*, sharding.* and target.*; for a sweep only its own sweep.url
  // with the credentials, which the record does not contain.
  std::vector<std::string> resume_sets = {};
  plan::LoadContext context = {};  // for sweeps, sizes on another target, reports and the predicted time of training
  // The user's hardware folder, where a training or a sweep of the engine keeps how its steps compare with their plan,
  // for later plans. Empty: nothing is kept, as for runs that the user does not make.
  std::filesystem::path hardware_folder = {};
  std::function<void(const store::RunId&)> on_run =
      {};  // called once on the worker thread, after the run is created and before its first event
};

class Job {
 public:
  // Returns immediately. A failure is reported as a Finished event with state failed. run() is set before the first
  // event.
  Job(JobRequest request, EventSink sink);
  ~Job();  // requests stop and joins
  void pause();
  void resume();
  void stop();  // cancels the run; a training run writes a checkpoint first
  bool finished() const;
  store::RunId run() const;  // empty until the run is created
  void wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Executes the run on the calling thread, for the command line.
store::RunOutcome run_blocking(const JobRequest& request, const EventSink& sink, std::stop_token stop);

}  // namespace mw::jobs
