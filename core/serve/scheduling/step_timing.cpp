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
  const double begun = clock_();
  StepResult result = inner_.run(step, scheduler);
  log_.push_back({step_work(step, config_), begun, clock_()});
  return result;
}

std::vector<TimedStep> time_logged_steps(const std::vector<LoggingExecutor::Entry>& log) {
  constexpr double kAtOnce = 2e-4;  // s
  std::vector<TimedStep> steps;
  double sampled = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    const bool busy = i + 1 < log.size() && log[i + 1].begun_s - log[i].ended_s < kAtOnce;
    steps.push_back({log[i].work, (busy ? log[i + 1].begun_s : log[i].ended_s) - log[i].begun_s});
    sampled += log[i].work.sampled;
  }
  double before = 0;
  for (TimedStep& step : steps) {
    if (sampled > 0) step.moment = (before + step.work.sampled / 2) / sampled;
    before += step.work.sampled;
  }
  return steps;
}

namespace {

struct Mix {
  int users = 1, prompt = 4;
};

// Any stretch of them from the start has few requests and many, short prompts and long.
std::vector<Mix> mixes_of(const SchedulerSettings& s, int longest) {
  std::vector<Mix> sorted, mixes;
  for (const int users : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256})
    for (const int prompt : {4, 60, 250, 1000, 4000, 16000})
      if (users <= s.max_num_seqs && prompt <= longest) sorted.push_back({users, prompt});
  const size_t n = sorted.size();
  if (n == 0) return {{1, std::max(1, longest)}};
  size_t stride = std::max<size_t>(1, static_cast<size_t>(0.618 * static_cast<double>(n)));
  while (std::gcd(stride, n) != 1) ++stride;
  for (size_t i = 0; i < n; ++i) mixes.push_back(sorted[i * stride % n]);
  return mixes;
}

// One mix after another: whoever is answered asks again, on the serving thread itself, so no step waits for a client.
class ClosedLoops : public Executor {
 public:
  ClosedLoops(Executor& executor, const SchedulerSettings& settings, const model::Config& config,
              const TimingSettings& timing)
      : timing_(timing),
        vocab_(config.vocab),
        log_(executor, config, timing.clock),
        live_(settings, *this, 2 * settings.max_num_seqs) {}

  // At least a step, then until `until_s`.
  std::vector<TimedStep> play(const Mix& mix, int most_new, double until_s) {
    mix_ = mix, most_new_ = most_new, until_s_ = until_s;
    over_ = false;
    for (int i = 0; i < mix.users; ++i) ask();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return open_.empty(); });
    }
    if (!error_.empty())
      throw Error({.id = "CALIBRATION", .message = "a step that was to be timed failed", .found = error_},
                  Error::Kind::failed);
    std::vector<TimedStep> steps;
    const std::vector<LoggingExecutor::Entry> log = log_.take();
    for (size_t i = 0; i + 1 < log.size(); ++i) steps.push_back({log[i].work, log[i + 1].begun_s - log[i].begun_s});
    return steps;  // what came after the last one is not known
  }

  void begin(RequestId id, const Prompt& prompt) override { log_.begin(id, prompt); }
  void end(RequestId id) override { log_.end(id); }
  StepResult run(const Step& step, const Scheduler& scheduler) override {
    StepResult result = log_.run(step, scheduler);
    over_ = over_ || timing_.clock() >= until_s_;
    if (!over_) return result;
    const std::lock_guard lock(mutex_);
    for (const RequestId id : open_) live_.cancel(id);
    return result;
  }

 private:
  void ask() {
    const auto n = static_cast<std::uint64_t>(asked_++);
    GenerationRequest ask{.prompt = {.ids = {}, .adapter = timing_.adapter}, .max_new_tokens = most_new_ / 3 + 1};
    ask.max_new_tokens +=
        static_cast<int>(n * 7 % static_cast<std::uint64_t>(most_new_ - most_new_ / 3));  // no two in step
    const auto ids = static_cast<std::uint64_t>(std::max(1, vocab_ - timing_.first_id));
    const Rng rng{n};
    for (int i = 0; i < mix_.prompt; ++i)
      ask.prompt.ids.push_back(timing_.first_id + static_cast<int>(rng.at(static_cast<std::uint64_t>(i)) % ids));
    const std::lock_guard lock(mutex_);
    open_.insert(live_.submit(std::move(ask), [this](RequestId id, const TokenEvent& a) {
      if (a.token < 0) answered(id, a);
    }));
  }
  void answered(RequestId id, const TokenEvent& a) {
    if (a.end == FinishReason::failed) over_ = true, error_ = a.error;
    if (!over_) ask();  // before this one goes: nobody is in flight only when all is over
    const std::lock_guard lock(mutex_);
    open_.erase(id);
    if (open_.empty()) changed_.notify_all();
  }

  const TimingSettings& timing_;
  const int vocab_;
  Mix mix_;
  int most_new_ = 0;
  double until_s_ = 0;
  std::atomic<bool> over_{false};
  std::atomic<long> asked_{0};
  std::mutex mutex_;  // of open_
  std::condition_variable changed_;
  std::set<RequestId> open_;
  std::string error_;
  LoggingExecutor log_;
  ServingLoop live_;  // the last: its thread ends first
};

}  // namespace

std::vector<TimedStep> time_steps(Executor& executor, const SchedulerSettings& settings, const model::Config& config,
                                  const TimingSettings& timing) {
  constexpr size_t kEnough = 2 * MeasuredStepModel::kTerms;
  constexpr size_t kRounds = 3;  // of all mixes: none of them owes its time to one moment of the machine
  const int most_new = std::clamp(settings.max_model_len / 4, 2, 24);
  const std::vector<Mix> mixes = mixes_of(settings, settings.max_model_len - most_new);
  ClosedLoops loops(executor, settings, config, timing);
  loops.play(mixes.front(), most_new, timing.clock());  // what is allocated or touched for the first time
  const double begun = timing.clock(), slice = timing.budget_s / static_cast<double>(kRounds * mixes.size());
  std::vector<TimedStep> steps;
  for (size_t i = 0;; ++i) {
    const double now = timing.clock();
    if (now - begun >= timing.budget_s && steps.size() >= kEnough) return steps;
    if (timing.progress) timing.progress(std::min(1.0, (now - begun) / timing.budget_s));
    const auto more = loops.play(mixes[i % mixes.size()], most_new, now + slice);
    steps.insert(steps.end(), more.begin(), more.end());
  }
}

}  // namespace mw::serve
