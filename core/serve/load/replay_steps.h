// SPDX-License-Identifier: Apache-2.0
// The steps of a load that was served on this machine, simulated from their own times: by what the steps took that were
// like them and came at about the same moment, since a machine's speed wanders within seconds. Any thread.
#pragma once
#include <memory>
#include <vector>

#include "core/serve/load/load.h"
#include "core/serve/scheduling/measured_steps.h"

namespace mw::serve {

class ReplayStepModel {
 public:
  // A law, and by how much the load's own steps were off it: theirs count, the more, the nearer they are in work
  // and moment. Without any, or far from all, the law holds. Those that do not tell their moment count at each.
  ReplayStepModel(MeasuredStepModel law, std::vector<TimedStep> own);
  static ReplayStepModel fit_load(std::vector<TimedStep> own,
                                  std::span<const TimedStep> others);  // MeasuredStepModel::fit_load

  double seconds(const StepWork& work, double moment) const;
  double output_tokens() const { return output_tokens_; }  // of the load
  const MeasuredStepModel& law() const { return law_; }

 private:
  struct Pace {
    StepWork work;
    double moment, off, count;  // `off`: seconds over the law's
  };
  MeasuredStepModel law_;
  std::vector<Pace> paces_;  // by moment, those without one first
  size_t timeless_ = 0;
  double output_tokens_ = 0;
};

// Answers with their seconds and token 0. The moment is the share of the load's tokens that it has answered.
class ReplayExecutor : public Executor {
 public:
  ReplayExecutor(ReplayStepModel steps, model::Config config) : steps_(std::move(steps)), config_(std::move(config)) {}
  void use(ReplayStepModel steps, const Load& load);  // which comes now, its warm-ups first
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  ReplayStepModel steps_;
  model::Config config_;
  double answered_ = 0;  // tokens since the warm-ups
};

}  // namespace mw::serve
