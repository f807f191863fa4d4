// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/step_timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {

StepClock wall_clock() {
  return [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
}

StepResult LoggingExecutor::run(const Step& step, const Scheduler& scheduler) {
  const double start_time = clock_();
  StepResult result = inner_.run(step, scheduler);
  log_.push_back({step_work(step, config_), start_time, clock_()});
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

namespace {

struct LoadMix {
  int users = 1, prompt_len = 4;
};

// All combinations that the server allows, in an order in which every leading part covers the whole range.
std::vector<LoadMix> load_mixes(const SchedulerSettings& s, int max_prompt_len) {
  std::vector<LoadMix> sorted, mixes;
  for (const int users : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256})
    for (const int prompt : {4, 60, 250, 1000, 4000, 16000})
      if (users <= s.max_num_seqs && prompt <= max_prompt_len) sorted.push_back({users, prompt});
  const size_t n = sorted.size();
  if (n == 0) return {{1, std::max(1, max_prompt_len)}};
  size_t stride = std::max<size_t>(1, static_cast<size_t>(0.618 * static_cast<double>(n)));
  while (std::gcd(stride, n) != 1) ++stride;
  for (size_t i = 0; i < n; ++i) mixes.push_back(sorted[i * stride % n]);
  return mixes;
}

// Runs one mix after another. A finished request is followed by a new one on the serving thread itself, so no step
// waits for a client.
class ClosedLoopRunner : public Executor {
 public:
  ClosedLoopRunner(Executor& executor, const SchedulerSettings& settings, const model::Config& config,
                   const TimingSettings& timing)
      : timing_(timing),
        vocab_(config.vocab),
        log_(executor, config, timing.clock),
        loop_(settings, *this, 2 * settings.max_num_seqs) {}

  // Runs at least one step, then until `until_s`.
  std::vector<formats::TimedStep> run_mix(const LoadMix& mix, int max_new_tokens, double until_s) {
    mix_ = mix, max_new_tokens_ = max_new_tokens, until_s_ = until_s;
    stopping_ = false;
    for (int i = 0; i < mix.users; ++i) submit();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return open_.empty(); });
    }
    if (!error_.empty())
      throw Error("CALIBRATION", "a step failed while steps were being timed", {.found = error_}, Error::Kind::failed);
    std::vector<formats::TimedStep> steps;
    const std::vector<LoggingExecutor::Entry> log = log_.take();
    for (size_t i = 0; i + 1 < log.size(); ++i) steps.push_back({log[i].work, log[i + 1].begun_s - log[i].begun_s});
    return steps;  // without the last one, which has no successor
  }

  void begin(RequestId id, const GenerationRequest& request) override { log_.begin(id, request); }
  void end(RequestId id) override { log_.end(id); }
  StepResult run(const Step& step, const Scheduler& scheduler) override {
    StepResult result = log_.run(step, scheduler);
    stopping_ = stopping_ || timing_.clock() >= until_s_;
    if (!stopping_) return result;
    const std::lock_guard lock(mutex_);
    for (const RequestId id : open_) loop_.cancel(id);
    return result;
  }

 private:
  void submit() {
    const auto n = static_cast<std::uint64_t>(submitted_++);
    const int shortest = max_new_tokens_ / 3;
    GenerationRequest request{.sampling = {.max_new_tokens = shortest + 1}, .adapter = timing_.adapter};
    // Different lengths, so that requests do not all finish in the same step.
    request.sampling.max_new_tokens += static_cast<int>(n * 7 % static_cast<std::uint64_t>(max_new_tokens_ - shortest));
    const auto ids = static_cast<std::uint64_t>(std::max(1, vocab_ - timing_.first_id));
    const Rng rng{n};
    for (int i = 0; i < mix_.prompt_len; ++i)
      request.prompt_ids.push_back(timing_.first_id + static_cast<int>(rng.at(static_cast<std::uint64_t>(i)) % ids));
    const std::lock_guard lock(mutex_);
    open_.insert(loop_.submit(std::move(request), [this](RequestId id, const TokenEvent& event) {
      if (event.is_last()) finished(id, event);
    }));
  }
  void finished(RequestId id, const TokenEvent& event) {
    if (event.finish_reason == FinishReason::failed) stopping_ = true, error_ = event.error;
    if (!stopping_) submit();  // before this one is erased: open_ is empty only when all have finished
    const std::lock_guard lock(mutex_);
    open_.erase(id);
    if (open_.empty()) changed_.notify_all();
  }

  const TimingSettings& timing_;
  const int vocab_;
  LoadMix mix_;
  int max_new_tokens_ = 0;
  double until_s_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<long> submitted_{0};
  std::mutex mutex_;  // guards open_
  std::condition_variable changed_;
  std::set<RequestId> open_;
  std::string error_;
  LoggingExecutor log_;
  ServingLoop loop_;  // last: its thread ends before the other members are destroyed
};

}  // namespace

std::vector<formats::TimedStep> time_steps(Executor& executor, const SchedulerSettings& settings,
                                           const model::Config& config, const TimingSettings& timing) {
  constexpr size_t kEnough = 2 * MeasuredStepModel::kTerms;
  constexpr size_t kRounds = 3;  // over all mixes, so that a slow moment of the machine does not hit a single mix
  const int max_new_tokens = std::clamp(settings.max_model_len / 4, 2, 24);
  const std::vector<LoadMix> mixes = load_mixes(settings, settings.max_model_len - max_new_tokens);
  ClosedLoopRunner runner(executor, settings, config, timing);
  runner.run_mix(mixes.front(), max_new_tokens, timing.clock());  // warm-up: first allocations and page faults
  const double start_time = timing.clock(), slice = timing.budget_s / static_cast<double>(kRounds * mixes.size());
  std::vector<formats::TimedStep> steps;
  for (size_t i = 0;; ++i) {
    const double now = timing.clock();
    if (now - start_time >= timing.budget_s && steps.size() >= kEnough) return steps;
    if (timing.progress) timing.progress(std::min(1.0, (now - start_time) / timing.budget_s));
    const auto more = runner.run_mix(mixes[i % mixes.size()], max_new_tokens, now + slice);
    steps.insert(steps.end(), more.begin(), more.end());
  }
}

}  // namespace mw::serve
