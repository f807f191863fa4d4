// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/measured_steps.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::serve {
namespace {

constexpr double kDecodeBatch = 16;  // tokens up to which the engine uses its matrix products for decoding

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Class of sizes that count as similar: exact up to 8, within a fifth above.
int size_class(double n) {
  constexpr double kExact = 8;
  return n <= kExact ? static_cast<int>(n) : static_cast<int>(kExact + std::ceil(4 * std::log2(n / kExact)));
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

formats::ServingStepWork step_work(const Step& step, const model::Config& config) {
  formats::ServingStepWork work;
  work.requests = static_cast<double>(step.items.size());
  for (const StepItem& item : step.items) {
    work.tokens += item.count;
    work.sampled += item.samples;
    for (const model::Layer& l : config.layers) {
      const bool is_sliding = l.attention == model::Attention::sliding && config.sliding_window > 0;
      const double keys = causal_pairs(item.first, item.count, is_sliding ? config.sliding_window : 0);
      if (item.count == 1)
        work.read += keys * 2 * l.kv_heads * l.head_dim;
      else
        work.pairs += keys * l.heads * l.head_dim;
    }
  }
  return work;
}

std::vector<formats::TimedStep> merge_similar_steps(std::span<const formats::TimedStep> steps) {
  constexpr double kFloats = 4096;  // unit of `read` and `pairs`
  constexpr double kProgressClasses = 64;
  std::map<std::array<int, 6>, formats::TimedStep> classes;
  for (const formats::TimedStep& s : steps) {
    const formats::ServingStepWork& w = s.work;
    const std::array key{
        size_class(w.requests),        size_class(w.tokens - w.requests),
        size_class(w.sampled),         size_class(w.read / kFloats),
        size_class(w.pairs / kFloats), std::isnan(s.progress) ? -1 : static_cast<int>(kProgressClasses * s.progress)};
    formats::TimedStep& sum = classes.try_emplace(key, formats::TimedStep{.count = 0, .progress = 0}).first->second;
    sum.work.tokens += s.count * w.tokens, sum.work.requests += s.count * w.requests;
    sum.work.sampled += s.count * w.sampled, sum.work.read += s.count * w.read, sum.work.pairs += s.count * w.pairs;
    sum.seconds += s.count * s.seconds, sum.progress += s.count * s.progress;
    sum.count += std::round(s.count);
  }
  std::vector<formats::TimedStep> all;
  for (auto& [key, s] : classes) {
    formats::ServingStepWork& w = s.work;
    for (double* value : {&w.tokens, &w.requests, &w.sampled, &w.read, &w.pairs, &s.seconds, &s.progress})
      *value /= s.count;
    all.push_back(s);
  }
  return all;
}

// The engine multiplies up to kDecodeBatch tokens with kernels that read the weights once, more tokens with others.
MeasuredStepModel::Terms MeasuredStepModel::terms_of(const formats::ServingStepWork& w) {
  return {1,
          std::min(w.tokens, kDecodeBatch),
          w.tokens > kDecodeBatch ? 1.0 : 0.0,
          std::max(0.0, w.tokens - kDecodeBatch),
          w.requests,
          w.sampled,
          w.read,
          w.pairs};
}

MeasuredStepModel::MeasuredStepModel(std::span<const formats::TimedStep> steps) {
  if (steps.size() < 2 * kTerms)
    throw Error("CALIBRATION", "too few steps were timed to fit a step model",
                {.found = std::to_string(steps.size()), .expected = "at least " + std::to_string(2 * kTerms)});
  std::vector<Terms> rows;
  std::vector<double> weights, errors(steps.size());
  for (const formats::TimedStep& s : steps) {
    rows.push_back(terms_of(s.work));
    weights.push_back(s.count);
  }
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {  // reweighted: steps with large errors count less in the next round
    seconds_per_ = solve(steps, rows, weights);
    for (size_t r = 0; r < rows.size(); ++r) errors[r] = std::abs(seconds(steps[r].work) / steps[r].seconds - 1);
    median_error_ = median_of(errors);
    const double usual = 2 * std::max(median_error_, 1e-3);
    for (size_t r = 0; r < rows.size(); ++r) weights[r] = steps[r].count * (errors[r] <= usual ? 1 : usual / errors[r]);
  }
}

// Weighted non-negative least squares by coordinate descent. Terms are scaled by their largest value, seconds by the
// measured time of the step.
MeasuredStepModel::Terms MeasuredStepModel::solve(std::span<const formats::TimedStep> steps,
                                                  std::span<const Terms> rows, std::span<const double> weights) {
  constexpr int kSweeps = 20'000;
  Terms largest{};
  for (const Terms& row : rows)
    for (size_t i = 0; i < kTerms; ++i) largest[i] = std::max(largest[i], row[i]);
  double a[kTerms][kTerms]{}, b[kTerms]{};  // normal equations
  for (size_t r = 0; r < rows.size(); ++r) {
    Terms x{};
    for (size_t i = 0; i < kTerms; ++i) x[i] = largest[i] > 0 ? rows[r][i] / largest[i] / steps[r].seconds : 0;
    for (size_t i = 0; i < kTerms; ++i) {
      b[i] += weights[r] * x[i];
      for (size_t j = 0; j < kTerms; ++j) a[i][j] += weights[r] * x[i] * x[j];
    }
  }
  Terms fit{};
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t i = 0; i < kTerms; ++i) {
      if (a[i][i] <= 0) continue;
      double rest = b[i];
      for (size_t j = 0; j < kTerms; ++j)
        if (j != i) rest -= a[i][j] * fit[j];
      fit[i] = std::max(0.0, rest / a[i][i]);
    }
  for (size_t i = 0; i < kTerms; ++i) fit[i] = largest[i] > 0 ? fit[i] / largest[i] : 0;
  return fit;
}

MeasuredStepModel MeasuredStepModel::scaled_to(std::span<const formats::TimedStep> steps) const {
  double measured = 0, modelled = 0;
  for (const formats::TimedStep& s : steps) measured += s.count * s.seconds, modelled += s.count * seconds(s.work);
  MeasuredStepModel scaled = *this;
  if (modelled > 0)
    for (double& t : scaled.seconds_per_) t *= measured / modelled;
  return scaled;
}

MeasuredStepModel MeasuredStepModel::fit_load(std::span<const formats::TimedStep> own,
                                              std::span<const formats::TimedStep> others) {
  constexpr double kWeightOfOthers = 0.02;
  std::vector<formats::TimedStep> steps(others.begin(), others.end());
  for (formats::TimedStep& step : steps) step.count *= kWeightOfOthers;
  steps.insert(steps.end(), own.begin(), own.end());
  return MeasuredStepModel(steps).scaled_to(own);
}

double MeasuredStepModel::seconds(const formats::ServingStepWork& work) const {
  const Terms x = terms_of(work);
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += seconds_per_[i] * x[i];
  return sum;
}

std::string MeasuredStepModel::describe() const {
  const Terms& t = seconds_per_;
  return formatted(
      "%.0f us per step, %.1f us per token up to 16, %.0f us and %.2f us per token beyond, %.1f us per request, "
      "%.1f us per row of logits, %.2f ns per cached float, %.3f ns per attention pair; median error %.1f %%",
      1e6 * t[0], 1e6 * t[1], 1e6 * t[2], 1e6 * t[3], 1e6 * t[4], 1e6 * t[5], 1e9 * t[6], 1e9 * t[7],
      100 * median_error_);
}

StepResult LoggingExecutor::run(const Step& step, const Scheduler& scheduler) {
  const double start_time = now_s();
  StepResult result = inner_.run(step, scheduler);
  log_.push_back({step_work(step, config_), start_time, now_s()});
  return result;
}

std::vector<formats::TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log) {
  constexpr double kAtOnce = 2e-4;  // seconds between two steps of a busy server
  std::vector<formats::TimedStep> steps;
  double sampled = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    const bool busy = i + 1 < log.size() && log[i + 1].begun_s - log[i].ended_s < kAtOnce;
    steps.push_back({log[i].work, (busy ? log[i + 1].begun_s : log[i].ended_s) - log[i].begun_s});
    sampled += log[i].work.sampled;
  }
  double before = 0;
  for (formats::TimedStep& step : steps) {
    if (sampled > 0) step.progress = (before + step.work.sampled / 2) / sampled;
    before += step.work.sampled;
  }
  return steps;
}

}  // namespace mw::serve
