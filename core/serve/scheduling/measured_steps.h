// SPDX-License-Identifier: Apache-2.0
// A model of how long this machine's engine takes for a serving step, fitted to steps that were timed, so that loads
// can be simulated on this machine. Immutable after the fit; any thread.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/model/config.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

struct StepWork {       // the quantities that determine the time of a step
  double tokens = 0;    // computed
  double requests = 0;  // in the step
  double sampled = 0;   // rows of logits
  double read = 0;      // floats of keys and values read by decoded tokens
  double pairs = 0;     // (query, key) pairs of prompt chunks times the width of their heads, over layers
};
StepWork step_work(const Step& step, const model::Config& config);

struct TimedStep {
  StepWork work;
  double seconds = 0;
  double count = 1;                     // number of similar steps of which these are the means
  double progress = formats::kUnknown;  // share of the load's output tokens generated before the step, 0..1
};
// Merges steps of similar work and progress into their means, which is what a recorded point keeps of its steps.
std::vector<formats::StepTime> merge_similar_steps(std::span<const TimedStep> steps);
std::vector<TimedStep> timed_steps(std::span<const formats::StepTime> steps);

class MeasuredStepModel {
 public:
  // Non-negative least squares of the relative errors; steps that were delayed by something else get less weight.
  // Throws Error CALIBRATION for fewer than 2 * kTerms steps.
  explicit MeasuredStepModel(std::span<const TimedStep> steps);
  double seconds(const StepWork& work) const;
  double median_error() const { return median_error_; }  // relative, of the steps it was fitted to
  // This model times a factor that makes its total over `steps` equal to their measured total.
  MeasuredStepModel scaled_to(std::span<const TimedStep> steps) const;
  // A model of one load: fitted to its own steps with the full weight and to those of others with a small one, then
  // scaled to its own.
  static MeasuredStepModel fit_load(std::span<const TimedStep> own, std::span<const TimedStep> others);
  std::string describe() const;  // the terms in readable units

  static constexpr size_t kTerms = 8;

 private:
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const StepWork& work);
  static Terms solve(std::span<const TimedStep> steps, std::span<const Terms> rows, std::span<const double> weights);

  Terms seconds_per_{};
  double median_error_ = 0;
};

// Returns the model's seconds and token 0. Not thread-safe.
class MeasuredExecutor : public Executor {
 public:
  MeasuredExecutor(MeasuredStepModel model, model::Config config)
      : model_(std::move(model)), config_(std::move(config)) {}
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  MeasuredStepModel model_;
  model::Config config_;
};

}  // namespace mw::serve
