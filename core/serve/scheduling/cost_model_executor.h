// SPDX-License-Identifier: Apache-2.0
// Takes the time of each step from the planner's model of a target and computes nothing. Not thread-safe.
#pragma once
#include "core/plan/time/serve_step.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

// (query, key) pairs of queries [first, first + count) with themselves and all before, at most `window` each (0: all).
double causal_pairs(double first, double count, double window);
// A step as the planner's step model describes it. `window`: tokens that a sliding layer sees, 0: no such layers.
plan::StepLoad step_load(const Step& step, int window);
// Token 0 for every item that samples: the result of executors without a model.
std::vector<SampledToken> zero_tokens(const Step& step);

class CostModelExecutor : public Executor {
 public:
  explicit CostModelExecutor(const plan::Request& request) : model_(request) {}
  const plan::ServeStepModel& model() const { return model_; }
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  plan::ServeStepModel model_;
};

}  // namespace mw::serve
