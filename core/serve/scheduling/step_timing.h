// SPDX-License-Identifier: Apache-2.0
// What steps take on this machine, timed in the loop that serves: scheduler, executor and what lies between two steps
// (answers, records, those who come and go).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/serve/scheduling/measured_steps.h"

namespace mw::serve {

using StepClock = std::function<double()>;  // s; any origin, never back
StepClock wall_clock();

// Another executor, whose steps are written down. run() on one thread; the log is read when nothing runs.
class LoggingExecutor : public Executor {
 public:
  struct Entry {
    StepWork work;
    double begun_s = 0, ended_s = 0;
  };
  LoggingExecutor(Executor& inner, const model::Config& config, StepClock clock = wall_clock())
      : inner_(inner), config_(config), clock_(std::move(clock)) {}
  void begin(RequestId id, const Prompt& prompt) override { inner_.begin(id, prompt); }
  void end(RequestId id) override { inner_.end(id); }
  StepResult run(const Step& step, const Scheduler& scheduler) override;
  std::vector<Entry> take() { return std::exchange(log_, {}); }

 private:
  Executor& inner_;
  const model::Config& config_;
  StepClock clock_;
  std::vector<Entry> log_;
};

// A whole load's, each with its moment and the time to the next one, where that came at once: what lies between two
// steps is the server's.
std::vector<TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log);

struct TimingSettings {
  double budget_s = 3;    // it ends within a step of it, but not before there are enough steps for a fit
  int first_id = 0;       // prompts are of ids from here
  std::string adapter{};  // that all requests ask for
  StepClock clock = wall_clock();
  std::function<void(double share)> progress = {};
};

// Closed loops of few and many requests, short prompts and long, on a server of their own: each step with the time to
// the one after it. In their order. Nothing else uses the executor meanwhile.
std::vector<TimedStep> time_steps(Executor& executor, const SchedulerSettings& settings, const model::Config& config,
                                  const TimingSettings& timing = {});

}  // namespace mw::serve
