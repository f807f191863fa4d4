// SPDX-License-Identifier: Apache-2.0
// A model of how long this machine's engine took for the serving steps of a recorded load, fitted to their times, so
// that a replay can simulate the load on another server. Immutable after the fit; any thread.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/model/config.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

formats::ServingStepWork step_work(const Step& step, const model::Config& config);

// Merges steps of similar work and progress into their means, which is what a recorded point keeps of its steps.
std::vector<formats::TimedStep> merge_similar_steps(std::span<const formats::TimedStep> steps);

class MeasuredStepModel {
 public:
  // Non-negative least squares of the relative errors; steps that were delayed by something else get less weight.
  // Throws Error CALIBRATION for fewer than 2 * kTerms steps.
  explicit MeasuredStepModel(std::span<const formats::TimedStep> steps);
  double seconds(const formats::ServingStepWork& work) const;
  double median_error() const { return median_error_; }  // relative, of the steps it was fitted to
  // This model times a factor that makes its total over `steps` equal to their measured total.
  MeasuredStepModel scaled_to(std::span<const formats::TimedStep> steps) const;
  // A model of one load: fitted to its own steps with the full weight and to those of others with a small one, then
  // scaled to its own.
  static MeasuredStepModel fit_load(std::span<const formats::TimedStep> own,
                                    std::span<const formats::TimedStep> others);
  std::string describe() const;  // the terms in readable units

  static constexpr size_t kTerms = 8;

 private:
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const formats::ServingStepWork& work);
  static Terms solve(std::span<const formats::TimedStep> steps, std::span<const Terms> rows,
                     std::span<const double> weights);

  Terms seconds_per_{};
  double median_error_ = 0;
};

}  // namespace mw::serve
