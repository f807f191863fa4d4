// SPDX-License-Identifier: Apache-2.0
// Step times of a load that was measured on this machine, for simulating it: a fitted model, corrected by the measured
// steps that are similar in work and close in progress, because a machine's speed drifts within seconds.
#pragma once
#include <vector>

#include "core/serve/load/load.h"
#include "core/serve/scheduling/measured_steps.h"

namespace mw::serve {

// Immutable; any thread.
class ReplayStepModel {
 public:
  // Corrects `model` by the ratio of measured to modelled time of the load's own steps, weighted by their similarity.
  // Far from all of them, or without any, the model holds. Steps of unknown progress count everywhere.
  ReplayStepModel(MeasuredStepModel model, std::vector<formats::TimedStep> own);
  // Returns the model of MeasuredStepModel::fit_load(own, others), corrected by `own`.
  static ReplayStepModel fit_load(std::vector<formats::TimedStep> own, std::span<const formats::TimedStep> others);

  double seconds(const formats::ServingStepWork& work, double progress) const;
  double output_tokens() const { return output_tokens_; }  // of the load

 private:
  struct Correction {
    formats::ServingStepWork work;
    double progress, ratio, count;  // ratio: measured over modelled seconds
  };
  MeasuredStepModel model_;
  std::vector<Correction> corrections_;  // by progress, those of unknown progress first
  size_t unknown_progress_ = 0;
  double output_tokens_ = 0;
};

// Returns the model's seconds and token 0; tracks the progress by the tokens it has returned. Not thread-safe.
class ReplayExecutor : public Executor {
 public:
  ReplayExecutor(ReplayStepModel steps, model::Config config) : steps_(std::move(steps)), config_(std::move(config)) {}
  void use(ReplayStepModel steps, const Load& load);  // call it before each load
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  ReplayStepModel steps_;
  model::Config config_;
  double generated_ = 0;  // tokens since the warm-ups
};

}  // namespace mw::serve
