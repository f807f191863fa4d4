// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/replay_steps.h"

#include <algorithm>
#include <cmath>

#include "core/serve/scheduling/executor.h"

namespace mw::serve {
namespace {

// Standard deviations of a Gaussian weight, which is cut off at kReach of them.
constexpr double kTokensScale = 0.1, kFloatsScale = 1.0 / 3;  // of natural logarithms
constexpr double kProgressScale = 0.03;
constexpr double kReach = 4;

double squared(double x) {
  return x * x;
}

// Squared distance of two steps in work, in the scales above.
double work_distance(const formats::ServingStepWork& a, const formats::ServingStepWork& b) {
  constexpr double kNegligible = 1e4;                                                  // floats
  if ((a.tokens > a.requests) != (b.tokens > b.requests)) return 2 * kReach * kReach;  // only one has prompt chunks
  return squared(std::log(a.tokens / b.tokens) / kTokensScale) +
         squared(std::log(a.requests / b.requests) / kTokensScale) +
         squared(std::log((a.read + kNegligible) / (b.read + kNegligible)) / kFloatsScale) +
         squared(std::log((a.pairs + kNegligible) / (b.pairs + kNegligible)) / kFloatsScale);
}

}  // namespace

ReplayStepModel::ReplayStepModel(MeasuredStepModel model, std::vector<formats::TimedStep> own)
    : model_(std::move(model)) {
  for (const formats::TimedStep& s : own) {
    if (const double modelled = model_.seconds(s.work); modelled > 0)
      corrections_.push_back({s.work, s.progress, s.seconds / modelled, s.count});
    output_tokens_ += s.count * s.work.sampled;
  }
  const auto timed = std::partition(corrections_.begin(), corrections_.end(),
                                    [](const Correction& p) { return std::isnan(p.progress); });
  std::sort(timed, corrections_.end(),
            [](const Correction& a, const Correction& b) { return a.progress < b.progress; });
  unknown_progress_ = static_cast<size_t>(timed - corrections_.begin());
}

ReplayStepModel ReplayStepModel::fit_load(std::vector<formats::TimedStep> own,
                                          std::span<const formats::TimedStep> others) {
  MeasuredStepModel model = MeasuredStepModel::fit_load(own, others);
  return {std::move(model), std::move(own)};
}

double ReplayStepModel::seconds(const formats::ServingStepWork& work, double progress) const {
  constexpr double kModelWeight = 0.01;  // of the uncorrected model, in steps
  double weights = kModelWeight, ratios = kModelWeight;
  const auto add = [&](const Correction& p, double progress_distance) {
    const double distance = progress_distance + work_distance(work, p.work);
    if (distance >= kReach * kReach) return;
    const double weight = p.count * std::exp(-distance / 2);
    weights += weight, ratios += weight * p.ratio;
  };
  const auto timed = corrections_.begin() + static_cast<std::ptrdiff_t>(unknown_progress_);
  for (auto p = corrections_.begin(); p != timed; ++p) add(*p, 0);
  const double first = progress - kReach * kProgressScale, last = progress + kReach * kProgressScale;
  auto p = std::lower_bound(timed, corrections_.end(), first,
                            [](const Correction& x, double at) { return x.progress < at; });
  for (; p != corrections_.end() && p->progress <= last; ++p)
    add(*p, squared((p->progress - progress) / kProgressScale));
  return model_.seconds(work) * ratios / weights;
}

void ReplayExecutor::use(ReplayStepModel steps, const Load& load) {
  steps_ = std::move(steps);
  generated_ = 0;
  for (const TimedRequest& warmup : load.warmups) generated_ -= warmup.output_len;
}

StepResult ReplayExecutor::run(const Step& step, const Scheduler&) {
  const formats::ServingStepWork work = step_work(step, config_);
  const double all = steps_.output_tokens(), now = generated_ + work.sampled / 2;
  generated_ += work.sampled;
  return {steps_.seconds(work, all > 0 ? std::clamp(now / all, 0.0, 1.0) : 0), zero_tokens(step)};
}

}  // namespace mw::serve
