// SPDX-License-Identifier: Apache-2.0
// Interface of what computes the scheduler's steps: the engine (wall clock, real tokens) or a cost model (virtual
// clock).
#pragma once
#include <string>
#include <vector>

#include "core/options/sampling.h"
#include "core/plan/prediction/serve_step.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

struct GenerationRequest {
  std::vector<int> prompt_ids{};
  options::SampleOptions sampling{.max_new_tokens = 16};
  std::string adapter{};  // by name; empty: the base model
  int priority = 0;       // see ScheduledRequest
  int likeliest = 0;      // alternatives to report with every token
};

struct TokenProbability {
  int token = 0;
  double probability = 0;  // of the model, before temperature and limits
};

struct SampledToken {
  RequestId id{};
  int token = 0;         // 0 from a cost model
  bool is_stop = false;  // a stop token, which is not part of the generated text
  double probability = 0;
  std::vector<TokenProbability> likeliest{};  // as many as were requested, likeliest first; if none, no probability
};

struct StepResult {
  double seconds = 0;                 // measured or predicted
  std::vector<SampledToken> sampled;  // one for each item that samples, in their order
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Called before the request is added to the scheduler, on the submitting thread, possibly during run(). Throws Error
  // if the request is invalid. Cost models need no request.
  virtual void begin(RequestId, const GenerationRequest&) {}
  virtual void end(RequestId) {}  // the request has finished or was aborted
  virtual StepResult run(const Step& step, const Scheduler& scheduler) = 0;
};

// Takes the time of each step from the planner's model of a target and computes nothing. Not thread-safe.

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
