// SPDX-License-Identifier: Apache-2.0
// A sweep that this program's engine served, simulated from the times of its own steps: each load from its own first,
// as fast as the machine was then, moment by moment. One thread.
#pragma once
#include <memory>
#include <optional>

#include "core/compare/recording.h"
#include "core/jobs/sweep_backends.h"
#include "core/serve/load/replay_steps.h"

namespace mw::compare {

class RecordedSteps {
 public:
  // Nothing where the recording has too few steps, or `server` is not this processor with the recorded model, its type
  // and adapters: then its steps would take another time. Throws what engine_server() does.
  static std::optional<RecordedSteps> of(const Recording& recording, const experiment::Experiment& server);

  jobs::BackendParts parts();  // once; the backend follows take_speed_of()
  // Of which `load`, the next one, is the replay.
  void take_speed_of(const formats::BenchPoint& point, const serve::Load& load);

 private:
  RecordedSteps(std::vector<serve::TimedStep> steps, model::Config config, serve::SchedulerSettings settings);

  std::vector<serve::TimedStep> steps_of_all_;
  serve::MeasuredStepModel model_;
  serve::SchedulerSettings settings_;
  std::unique_ptr<serve::ReplayExecutor> made_;
  serve::ReplayExecutor* executor_;  // the backend's once that is made
  double seconds_ = 0, steps_ = 0;   // that the model was fitted to
};

}  // namespace mw::compare
