// SPDX-License-Identifier: Apache-2.0
// How long this machine's engine takes for the serving steps of a load: their times as the serving loop logs them, with
// the work between two steps, and a model fitted to those of a recorded load, so that a replay can simulate it on
// another server.
#pragma once
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/model/config.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

formats::ServingStepWork step_work(const Step& step, const model::Config& config);

// Merges steps of similar work and progress into their means, which is what a recorded point keeps of its steps.
std::vector<formats::TimedStep> merge_similar_steps(std::span<const formats::TimedStep> steps);

// Immutable after the fit; any thread.
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

// Forwards to another executor and logs its steps. Call take() only while no step runs.
class LoggingExecutor : public Executor {
 public:
  struct Entry {
    formats::ServingStepWork work;
    double begun_s = 0, ended_s = 0;  // monotonic, with any origin
  };
  LoggingExecutor(Executor& inner, const model::Config& config) : inner_(inner), config_(config) {}
  void begin(RequestId id, const GenerationRequest& request) override { inner_.begin(id, request); }
  void end(RequestId id) override { inner_.end(id); }
  StepResult run(const Step& step, const Scheduler& scheduler) override;
  std::vector<Entry> take() { return std::exchange(log_, {}); }

 private:
  Executor& inner_;
  const model::Config& config_;
  std::vector<Entry> log_;
};

// The steps of a whole load with their progress. The time of a step reaches to the next one if that followed at once,
// because the server spends the time between them.
std::vector<formats::TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log);

}  // namespace mw::serve
