// SPDX-License-Identifier: Apache-2.0
// How long this machine's engine takes for a server's step, fitted to steps that were timed, so that a load can be
// simulated on it: predicted, calibrated on this machine. The model is immutable after the fit; any thread.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/model/config.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

struct StepWork {       // what a step's time follows from
  double tokens = 0;    // computed
  double requests = 0;  // in the step
  double sampled = 0;   // rows of logits
  double read = 0;      // floats of keys and values that single tokens read
  double pairs = 0;     // (query, key) pairs of chunks, over layers and heads
};
StepWork step_work(const Step& step, const model::Config& config);

struct TimedStep {
  StepWork work;
  double seconds = 0;
  double count = 1;                   // steps that were alike, of which these are the means
  double moment = formats::kUnknown;  // as formats::StepTime
};
// Steps of about the same work and moment as one, and back: what a point keeps of its steps.
std::vector<formats::StepTime> merge_similar_steps(std::span<const TimedStep> steps);
std::vector<TimedStep> timed_steps(std::span<const formats::StepTime> steps);

class MeasuredStepModel {
 public:
  // Least squares of relative errors with terms that are never negative; steps that something else held up weigh less.
  // Throws Error CALIBRATION for fewer steps than terms.
  explicit MeasuredStepModel(std::span<const TimedStep> steps);
  double seconds(const StepWork& work) const;
  double median_error() const { return median_error_; }  // relative, of the steps it was fitted to
  // The same law on a machine that is held up now and then: as much slower as these steps were, together, than it says.
  MeasuredStepModel beside(std::span<const TimedStep> steps) const;
  // Of one load: fitted to its own steps first, to those of others for what it has too few of; as fast as its own were.
  static MeasuredStepModel fit_load(std::span<const TimedStep> own, std::span<const TimedStep> others);
  std::string text() const;  // its terms, for people

  static constexpr size_t kTerms = 8;

 private:
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const StepWork& work);

  Terms seconds_per_{};
  double median_error_ = 0;
};

// Answers with the model's seconds and token 0.
class MeasuredExecutor : public Executor {
 public:
  MeasuredExecutor(MeasuredStepModel model, model::Config config)
      : model_(std::move(model)), config_(std::move(config)) {}
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  MeasuredStepModel model_;
  model::Config config_;
};
std::unique_ptr<Executor> measured_executor(MeasuredStepModel model, model::Config config);

}  // namespace mw::serve
