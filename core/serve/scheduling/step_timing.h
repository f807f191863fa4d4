// SPDX-License-Identifier: Apache-2.0
// Measures how long serving steps take on this machine inside the serving loop: scheduler, executor and the work
// between two steps (delivering tokens, recording, admitting and finishing requests).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/serve/scheduling/measured_steps.h"

namespace mw::serve {

using StepClock = std::function<double()>;  // seconds, monotonic, with any origin
StepClock wall_clock();

// Forwards to another executor and logs its steps. Call take() only while no step runs.
class LoggingExecutor : public Executor {
 public:
  struct Entry {
    formats::ServingStepWork work;
    double begun_s = 0, ended_s = 0;
  };
  LoggingExecutor(Executor& inner, const model::Config& config, StepClock clock = wall_clock())
      : inner_(inner), config_(config), clock_(std::move(clock)) {}
  void begin(RequestId id, const GenerationRequest& request) override { inner_.begin(id, request); }
  void end(RequestId id) override { inner_.end(id); }
  StepResult run(const Step& step, const Scheduler& scheduler) override;
  std::vector<Entry> take() { return std::exchange(log_, {}); }

 private:
  Executor& inner_;
  const model::Config& config_;
  StepClock clock_;
  std::vector<Entry> log_;
};

// The steps of a whole load with their progress. The time of a step reaches to the next one if that followed at once,
// because the server spends the time between them.
std::vector<formats::TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log);

struct TimingSettings {
  double budget_s = 3;    // ends within a step of it, but not before there are enough steps for a fit
  int first_id = 0;       // lowest token id in prompts
  std::string adapter{};  // of all requests
  StepClock clock = wall_clock();
  std::function<void(double share)> progress = {};
};

// Runs closed loops of few and many requests with short and long prompts on a serving loop of its own. Returns the
// steps in order, each with the time to the next one. Nothing else may use the executor meanwhile.
std::vector<formats::TimedStep> time_steps(Executor& executor, const SchedulerSettings& settings,
                                           const model::Config& config, const TimingSettings& timing = {});

}  // namespace mw::serve
