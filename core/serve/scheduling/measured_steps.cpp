// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/measured_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/base/error.h"
#include "core/serve/scheduling/cost_model_executor.h"

namespace mw::serve {
namespace {

constexpr double kFewTokens = 16;  // that the engine's products for decoding take at once

// Keys that tokens [first, first + count) of a request see, together.
double keys_seen(double first, double count, double window) {
  const double whole = std::clamp(window - first, 0.0, count);  // of them have nothing behind the window
  return whole * first + whole * (whole + 1) / 2 + (count - whole) * window;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

StepWork step_work(const Step& step, const model::Config& config) {
  StepWork work;
  work.requests = static_cast<double>(step.items.size());
  for (const StepItem& item : step.items) {
    work.tokens += item.count;
    work.sampled += item.samples;
    for (const model::Layer& l : config.layers) {
      const bool slides = l.attention == model::Attention::sliding && config.sliding_window > 0;
      const double keys = keys_seen(item.first, item.count, slides ? config.sliding_window : 1e18);
      if (item.count == 1)
        work.read += keys * 2 * l.kv_heads * l.head_dim;
      else
        work.pairs += keys * l.heads * l.head_dim;
    }
  }
  return work;
}

namespace {

// Of about the same size: exactly so for few, within a fifth for more.
int about(double n) {
  constexpr double kFew = 8;
  return n <= kFew ? static_cast<int>(n) : static_cast<int>(kFew + std::ceil(4 * std::log2(n / kFew)));
}

}  // namespace

std::vector<formats::StepTime> merge_similar_steps(std::span<const TimedStep> steps) {
  constexpr double kFloats = 4096;  // keys and values in lots of them
  constexpr double kMoments = 64;
  std::map<std::array<int, 6>, formats::StepTime> alike;
  for (const TimedStep& s : steps) {
    const StepWork& w = s.work;
    const std::array kind{about(w.requests),        about(w.tokens - w.requests),
                          about(w.sampled),         about(w.read / kFloats),
                          about(w.pairs / kFloats), std::isnan(s.moment) ? -1 : static_cast<int>(kMoments * s.moment)};
    formats::StepTime& sum = alike.try_emplace(kind, formats::StepTime{.count = 0, .moment = 0}).first->second;
    sum.tokens += s.count * w.tokens, sum.requests += s.count * w.requests, sum.sampled += s.count * w.sampled;
    sum.read += s.count * w.read, sum.pairs += s.count * w.pairs, sum.seconds += s.count * s.seconds;
    sum.moment += s.count * s.moment, sum.count += std::lround(s.count);
  }
  std::vector<formats::StepTime> all;
  for (auto& [kind, s] : alike) {
    for (double* value : {&s.tokens, &s.requests, &s.sampled, &s.read, &s.pairs, &s.seconds, &s.moment})
      *value /= static_cast<double>(s.count);
    all.push_back(s);
  }
  return all;
}

std::vector<TimedStep> timed_steps(std::span<const formats::StepTime> steps) {
  std::vector<TimedStep> all;
  for (const formats::StepTime& s : steps)
    all.push_back(
        {{s.tokens, s.requests, s.sampled, s.read, s.pairs}, s.seconds, static_cast<double>(s.count), s.moment});
  return all;
}

// The engine's products take few tokens one way, whose weights are read once, and more another.
MeasuredStepModel::Terms MeasuredStepModel::terms_of(const StepWork& w) {
  return {1,
          std::min(w.tokens, kFewTokens),
          w.tokens > kFewTokens ? 1.0 : 0.0,
          std::max(0.0, w.tokens - kFewTokens),
          w.requests,
          w.sampled,
          w.read,
          w.pairs};
}

MeasuredStepModel::MeasuredStepModel(std::span<const TimedStep> steps) {
  if (steps.size() < 2 * kTerms)
    throw Error({.id = "CALIBRATION",
                 .message = "too few steps were timed for a model of them",
                 .found = std::to_string(steps.size()),
                 .expected = "at least " + std::to_string(2 * kTerms)});
  std::vector<Terms> rows;
  Terms most{};
  for (const TimedStep& s : steps) {
    rows.push_back(terms_of(s.work));
    for (size_t i = 0; i < kTerms; ++i) most[i] = std::max(most[i], rows.back()[i]);
  }
  std::vector<double> weight, errors(steps.size());
  for (const TimedStep& s : steps) weight.push_back(s.count);
  constexpr int kRounds = 4, kSweeps = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    double a[kTerms][kTerms]{}, b[kTerms]{};  // normal equations of terms in parts of their largest, seconds in parts
    for (size_t r = 0; r < rows.size(); ++r) {
      Terms x{};
      for (size_t i = 0; i < kTerms; ++i) x[i] = most[i] > 0 ? rows[r][i] / most[i] / steps[r].seconds : 0;
      for (size_t i = 0; i < kTerms; ++i) {
        b[i] += weight[r] * x[i];
        for (size_t j = 0; j < kTerms; ++j) a[i][j] += weight[r] * x[i] * x[j];
      }
    }
    Terms fit{};
    for (int sweep = 0; sweep < kSweeps; ++sweep)  // coordinate descent, which keeps every term at 0 or above
      for (size_t i = 0; i < kTerms; ++i) {
        if (a[i][i] <= 0) continue;
        double rest = b[i];
        for (size_t j = 0; j < kTerms; ++j)
          if (j != i) rest -= a[i][j] * fit[j];
        fit[i] = std::max(0.0, rest / a[i][i]);
      }
    for (size_t i = 0; i < kTerms; ++i) seconds_per_[i] = most[i] > 0 ? fit[i] / most[i] : 0;
    for (size_t r = 0; r < rows.size(); ++r) errors[r] = std::abs(seconds(steps[r].work) / steps[r].seconds - 1);
    median_error_ = median_of(errors);
    const double usual = 2 * std::max(median_error_, 1e-3);
    for (size_t r = 0; r < rows.size(); ++r) weight[r] = steps[r].count * (errors[r] <= usual ? 1 : usual / errors[r]);
  }
}

MeasuredStepModel MeasuredStepModel::beside(std::span<const TimedStep> steps) const {
  double taken = 0, modelled = 0;
  for (const TimedStep& s : steps) taken += s.count * s.seconds, modelled += s.count * seconds(s.work);
  MeasuredStepModel scaled = *this;
  if (modelled > 0)
    for (double& t : scaled.seconds_per_) t *= taken / modelled;
  return scaled;
}

MeasuredStepModel MeasuredStepModel::fit_load(std::span<const TimedStep> own, std::span<const TimedStep> others) {
  constexpr double kOthers = 0.02;  // weight
  std::vector<TimedStep> steps(others.begin(), others.end());
  for (TimedStep& step : steps) step.count *= kOthers;
  steps.insert(steps.end(), own.begin(), own.end());
  return MeasuredStepModel(steps).beside(own);
}

double MeasuredStepModel::seconds(const StepWork& work) const {
  const Terms x = terms_of(work);
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += seconds_per_[i] * x[i];
  return sum;
}

std::string MeasuredStepModel::text() const {
  char line[300];
  const Terms& t = seconds_per_;
  std::snprintf(line, sizeof line,
                "%.0f us a step, %.1f us a token to 16, %.0f us and %.2f us a token beyond, %.1f us a request, %.1f us "
                "a row of logits, %.2f ns a cached float, %.3f ns a pair; median error %.1f %%",
                1e6 * t[0], 1e6 * t[1], 1e6 * t[2], 1e6 * t[3], 1e6 * t[4], 1e6 * t[5], 1e9 * t[6], 1e9 * t[7],
                100 * median_error_);
  return line;
}

StepResult MeasuredExecutor::run(const Step& step, const Scheduler&) {
  return {model_.seconds(step_work(step, config_)), zero_tokens(step)};
}

std::unique_ptr<Executor> measured_executor(MeasuredStepModel model, model::Config config) {
  return std::make_unique<MeasuredExecutor>(std::move(model), std::move(config));
}

}  // namespace mw::serve
