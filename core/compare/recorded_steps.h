// SPDX-License-Identifier: Apache-2.0
// Simulates a sweep of this engine from its recorded step times. Each load uses first the times recorded during that
// load, so that it follows the speed of the machine at that time. Not thread-safe.
#pragma once
#include <memory>
#include <optional>

#include "core/compare/recording.h"
#include "core/jobs/sweep_backends.h"
#include "core/serve/load/replay_steps.h"

namespace mw::compare {

class RecordedSteps {
 public:
  // Returns empty if the recording has too few steps, or if `server` differs from the recorded processor, model, type
  // or adapters, because its steps would then take other times. Throws the Errors of engine_server().
  static std::optional<RecordedSteps> of(const Recording& recording, const experiment::Experiment& server);

  jobs::BackendParts parts();  // call once; the backend uses the speed set by take_speed_of()
  // Sets the speed of the next load to that of the recorded point.
  void take_speed_of(const formats::BenchPoint& point, const serve::Load& load);

 private:
  RecordedSteps(std::vector<serve::TimedStep> steps, model::Config config, serve::SchedulerSettings settings);

  std::vector<serve::TimedStep> steps_of_all_;
  serve::MeasuredStepModel model_;
  serve::SchedulerSettings settings_;
  std::unique_ptr<serve::ReplayExecutor> made_;
  serve::ReplayExecutor* executor_;  // owned by `made_`, or by the backend after parts()
  double seconds_ = 0, steps_ = 0;   // time and number of the steps that the model was fitted to
};

}  // namespace mw::compare
