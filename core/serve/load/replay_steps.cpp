// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/replay_steps.h"

#include <algorithm>
#include <cmath>

#include "core/serve/scheduling/cost_model_executor.h"

namespace mw::serve {
namespace {

// Steps this far apart say e^-1/2 of what they say of themselves; beyond four times as far, nothing.
constexpr double kTokensApart = 0.1, kFloatsApart = 1.0 / 3;  // natural logarithms
constexpr double kMomentsApart = 0.03;
constexpr double kReach = 4;

double squared(double x) {
  return x * x;
}

// Squared distance of two steps' work, in the units above.
double apart(const StepWork& a, const StepWork& b) {
  constexpr double kFew = 1e4;  // floats that are as good as none
  if ((a.tokens > a.requests) != (b.tokens > b.requests)) return 2 * kReach * kReach;  // only one reads prompts
  return squared(std::log(a.tokens / b.tokens) / kTokensApart) +
         squared(std::log(a.requests / b.requests) / kTokensApart) +
         squared(std::log((a.read + kFew) / (b.read + kFew)) / kFloatsApart) +
         squared(std::log((a.pairs + kFew) / (b.pairs + kFew)) / kFloatsApart);
}

}  // namespace

ReplayStepModel::ReplayStepModel(MeasuredStepModel law, std::vector<TimedStep> own) : law_(std::move(law)) {
  for (const TimedStep& s : own) {
    if (const double said = law_.seconds(s.work); said > 0)
      paces_.push_back({s.work, s.moment, s.seconds / said, s.count});
    output_tokens_ += s.count * s.work.sampled;
  }
  const auto timed = std::partition(paces_.begin(), paces_.end(), [](const Pace& p) { return std::isnan(p.moment); });
  std::sort(timed, paces_.end(), [](const Pace& a, const Pace& b) { return a.moment < b.moment; });
  timeless_ = static_cast<size_t>(timed - paces_.begin());
}

ReplayStepModel ReplayStepModel::fit_load(std::vector<TimedStep> own, std::span<const TimedStep> others) {
  MeasuredStepModel law = MeasuredStepModel::fit_load(own, others);
  return {std::move(law), std::move(own)};
}

double ReplayStepModel::seconds(const StepWork& work, double moment) const {
  constexpr double kLaw = 0.01;  // steps that the law's word is worth
  double count = kLaw, off = kLaw;
  const auto hear = [&](const Pace& p, double moments) {
    const double distance = moments + apart(work, p.work);
    if (distance >= kReach * kReach) return;
    const double says = p.count * std::exp(-distance / 2);
    count += says, off += says * p.off;
  };
  const auto timed = paces_.begin() + static_cast<std::ptrdiff_t>(timeless_);
  for (auto p = paces_.begin(); p != timed; ++p) hear(*p, 0);
  const double first = moment - kReach * kMomentsApart, last = moment + kReach * kMomentsApart;
  auto p = std::lower_bound(timed, paces_.end(), first, [](const Pace& x, double at) { return x.moment < at; });
  for (; p != paces_.end() && p->moment <= last; ++p) hear(*p, squared((p->moment - moment) / kMomentsApart));
  return law_.seconds(work) * off / count;
}

void ReplayExecutor::use(ReplayStepModel steps, const Load& load) {
  steps_ = std::move(steps);
  answered_ = 0;
  for (const TimedRequest& warmup : load.warmups) answered_ -= warmup.output_len;
}

StepResult ReplayExecutor::run(const Step& step, const Scheduler&) {
  const StepWork work = step_work(step, config_);
  const double all = steps_.output_tokens(), now = answered_ + work.sampled / 2;
  answered_ += work.sampled;
  return {steps_.seconds(work, all > 0 ? std::clamp(now / all, 0.0, 1.0) : 0), zero_tokens(step)};
}

}  // namespace mw::serve
