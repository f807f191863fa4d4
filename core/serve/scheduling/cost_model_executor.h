// SPDX-License-Identifier: Apache-2.0
// Steps that take as long as the planner's model of a target says, and compute nothing. One thread.
#pragma once
#include "core/plan/time/serve_step.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

// What a step is to a step model: its decodes (one token each, which gives the next) and its prompt tokens.
plan::StepLoad step_load(const Step& step, int window);
// Every item that samples gives token 0.
std::vector<StepResult::Sampled> zero_tokens(const Step& step);

class CostModelExecutor : public Executor {
 public:
  explicit CostModelExecutor(const plan::Request& request) : model_(request) {}
  const plan::ServeStepModel& model() const { return model_; }
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  plan::ServeStepModel model_;
};

}  // namespace mw::serve
