// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/step_timing.h"

#include <chrono>

namespace mw::serve {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

StepResult LoggingExecutor::run(const Step& step, const Scheduler& scheduler) {
  const double start_time = now_s();
  StepResult result = inner_.run(step, scheduler);
  log_.push_back({step_work(step, config_), start_time, now_s()});
  return result;
}

std::vector<formats::TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log) {
  constexpr double kAtOnce = 2e-4;  // seconds between two steps of a busy server
  std::vector<formats::TimedStep> steps;
  double sampled = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    const bool busy = i + 1 < log.size() && log[i + 1].begun_s - log[i].ended_s < kAtOnce;
    steps.push_back({log[i].work, (busy ? log[i + 1].begun_s : log[i].ended_s) - log[i].begun_s});
    sampled += log[i].work.sampled;
  }
  double before = 0;
  for (formats::TimedStep& step : steps) {
    if (sampled > 0) step.progress = (before + step.work.sampled / 2) / sampled;
    before += step.work.sampled;
  }
  return steps;
}

}  // namespace mw::serve
