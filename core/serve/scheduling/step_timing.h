// SPDX-License-Identifier: Apache-2.0
// Measures how long the serving steps of a load take on this machine inside the serving loop: scheduler, executor and
// the work between two steps (delivering tokens, recording, admitting and finishing requests).
#pragma once
#include <utility>
#include <vector>

#include "core/serve/scheduling/measured_steps.h"

namespace mw::serve {

// Forwards to another executor and logs its steps. Call take() only while no step runs.
class LoggingExecutor : public Executor {
 public:
  struct Entry {
    formats::ServingStepWork work;
    double begun_s = 0, ended_s = 0;  // monotonic, with any origin
  };
  LoggingExecutor(Executor& inner, const model::Config& config) : inner_(inner), config_(config) {}
  void begin(RequestId id, const GenerationRequest& request) override { inner_.begin(id, request); }
  void end(RequestId id) override { inner_.end(id); }
  StepResult run(const Step& step, const Scheduler& scheduler) override;
  std::vector<Entry> take() { return std::exchange(log_, {}); }

 private:
  Executor& inner_;
  const model::Config& config_;
  std::vector<Entry> log_;
};

// The steps of a whole load with their progress. The time of a step reaches to the next one if that followed at once,
// because the server spends the time between them.
std::vector<formats::TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log);

}  // namespace mw::serve
