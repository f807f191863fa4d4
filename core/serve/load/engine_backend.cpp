// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/engine_backend.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/serve/scheduling/engine_executor.h"
#include "core/serve/scheduling/serving_loop.h"
#include "core/serve/scheduling/step_timing.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kQueue = 1 << 30;  // the client's cap is the only one
constexpr double kLate = 0.005;  // s: a client that is later than this measures itself

// Sends requests at their moments, never more than `most` at once, and gathers what becomes of them. play() on one
// thread; answers come on the server's.
class Player {
 public:
  Player(ServingLoop& live, const std::vector<TimedRequest>& requests, int most, std::vector<GenerationRequest> asks)
      : live_(live), requests_(requests), most_(most), asks_(std::move(asks)), results_(requests.size()) {}

  // Of each request; nothing of those that the stop cut short. Seconds since the start.
  std::vector<std::optional<formats::RequestResult>> play(Arrival arrival, const LoadBackend::OnProgress& progress,
                                                          const std::stop_token& stop) {
    begun_ = live_.now();
    const Clock::time_point begun = Clock::now();
    for (size_t i = 0; i < requests_.size() && !stop.stop_requested(); ++i) {
      const auto due =
          begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(requests_[i].at_s));
      while (Clock::now() < due && !stop.stop_requested()) wait(due, stop, progress, [] { return false; });
      while (in_flight() >= most_ && !stop.stop_requested())
        wait(Clock::now() + std::chrono::seconds(1), stop, progress, [&] { return in_flight_ < most_; });
      if (!stop.stop_requested()) send(i, arrival);
    }
    while (in_flight() > 0 && !stop.stop_requested())
      wait(Clock::now() + std::chrono::seconds(1), stop, progress, [&] { return in_flight_ == 0; });
    if (stop.stop_requested())
      for (const RequestId id : sent_) live_.cancel(id);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return in_flight_ == 0; });
    }
    if (!stop.stop_requested()) report(progress);  // the last may have ended between two looks
    return std::move(results_);
  }
  double begun() const { return begun_; }

 private:
  int in_flight() const {
    const std::lock_guard lock(mutex_);
    return in_flight_;
  }

  template <class F>
  void wait(Clock::time_point until, const std::stop_token& stop, const LoadBackend::OnProgress& progress, F ready) {
    {
      std::unique_lock lock(mutex_);
      const long before = done_;
      changed_.wait_until(lock, stop, until, [&] { return ready() || done_ > before; });
    }
    report(progress);
  }

  void report(const LoadBackend::OnProgress& progress) {
    long done = 0;
    {
      const std::lock_guard lock(mutex_);
      done = done_;
    }
    if (progress) progress(done, static_cast<long>(requests_.size()));
  }

  void send(size_t i, Arrival arrival) {
    {
      const std::lock_guard lock(mutex_);
      ++in_flight_;
    }
    const double at = live_.now() - begun_;
    try {
      sent_.push_back(live_.submit(std::move(asks_[i]), [this, i, arrival](RequestId, const TokenEvent& a) {
        if (a.token < 0) ended(i, arrival, a);
      }));
    } catch (const Error& error) {
      formats::RequestResult refused{.intended_s = arrival == Arrival::closed ? at : requests_[i].at_s,
                                     .sent_s = at,
                                     .end_s = live_.now() - begun_};
      refused.prompt_tokens = requests_[i].prompt_len;
      refused.error = error.what();
      close(i, std::move(refused));
    }
  }

  void ended(size_t i, Arrival arrival, const TokenEvent& a) {
    formats::RequestResult r = a.timing;
    for (double* at : {&r.sent_s, &r.first_token_s, &r.end_s, &r.scheduled_s}) *at -= begun_;
    r.intended_s = arrival == Arrival::closed ? r.sent_s : requests_[i].at_s;
    close(i, a.end == FinishReason::cancelled ? std::nullopt : std::optional(std::move(r)));
  }

  void close(size_t i, std::optional<formats::RequestResult> result) {
    const std::lock_guard lock(mutex_);
    results_[i] = std::move(result);
    --in_flight_, ++done_;
    changed_.notify_all();
  }

  ServingLoop& live_;
  const std::vector<TimedRequest>& requests_;
  const int most_;
  std::vector<GenerationRequest> asks_;
  std::vector<RequestId> sent_;
  double begun_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  int in_flight_ = 0;
  long done_ = 0;
  std::vector<std::optional<formats::RequestResult>> results_;
};

class LiveBackend : public LoadBackend {
 public:
  LiveBackend(Executor& executor, const SchedulerSettings& settings, const EngineBackendOptions& load)
      : load_(load), live_(settings, executor, kQueue) {}

  LoadResult play(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    const LoadSettings& s = load.settings;
    const int most = s.concurrency > 0 ? s.concurrency : kQueue;
    if (s.prompts == PromptMode::salted) live_.clear_prefix_cache();  // they cannot hit what others left
    if (!load.warmups.empty()) Player(live_, load.warmups, most, asks(load.warmups)).play(Arrival::burst, {}, stop);
    if (load_.warmed_up) load_.warmed_up();
    live_.take_timeline();
    const SchedulerState before = live_.state().scheduler;
    Player player(live_, load.requests, most, asks(load.requests));
    LoadResult played;
    double first = 0, last = 0;
    for (auto& r : player.play(s.arrival, progress, stop)) {
      if (!r) continue;
      first = played.requests.empty() ? r->intended_s : std::min(first, r->intended_s);
      last = std::max(last, r->end_s);
      played.requests.push_back(std::move(*r));
    }
    played.duration_s = std::max(0.0, last - first);
    played.timeline = live_.take_timeline();
    for (formats::LoadSample& sample : played.timeline) sample.time_s -= player.begun();
    const SchedulerState after = live_.state().scheduler;
    if (after.prompt_tokens > before.prompt_tokens)
      played.prefix_hits = static_cast<double>(after.cached_tokens - before.cached_tokens) /
                           static_cast<double>(after.prompt_tokens - before.prompt_tokens);
    warn(s, played);
    return played;
  }

 private:
  std::vector<GenerationRequest> asks(const std::vector<TimedRequest>& requests) const {  // before the clock starts
    std::vector<GenerationRequest> all;
    for (const TimedRequest& r : requests)
      all.push_back(
          {.prompt = {.ids = prompt_ids(r, load_.first_id, load_.vocab), .adapter = load_.adapter ? kLoadAdapter : ""},
           .max_new_tokens = r.output_len});
    return all;
  }

  static void warn(const LoadSettings& s, LoadResult& played) {
    std::vector<double> late;
    for (const formats::RequestResult& r : played.requests) late.push_back(r.sent_s - r.intended_s);
    if (s.arrival == Arrival::closed || late.empty()) return;
    const double p99 = formats::percentile_of(late, 99);
    if (p99 < kLate) return;
    played.warnings.push_back(std::string(s.concurrency > 0 ? "requests waited for the cap of "
                                                            : "the client was late, as it shares the processor: ") +
                              (s.concurrency > 0 ? std::to_string(s.concurrency) + " in flight: " : "") +
                              "99 % left within " + std::to_string(static_cast<int>(p99 * 1e3 + 0.5)) +
                              " ms of their time");
  }

  EngineBackendOptions load_;
  ServingLoop live_;
};

class EngineBackend : public LoadBackend {
 public:
  EngineBackend(engine::Network& network, const SchedulerSettings& settings, const EngineBackendOptions& load)
      : executor_(network, settings), logged_(executor_, network.config()) {
    if (load.adapter) executor_.add_adapter(kLoadAdapter, *load.adapter);
    EngineBackendOptions logged = load;
    logged.warmed_up = [this] { logged_.take(); };
    backend_ = make_loop_backend(logged_, settings, logged);
  }
  LoadResult play(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    LoadResult played = backend_->play(load, progress, std::move(stop));
    played.steps = merge_similar_steps(time_logged_steps(logged_.take()));
    return played;
  }

 private:
  EngineExecutor executor_;
  LoggingExecutor logged_;
  std::unique_ptr<LoadBackend> backend_;
};

}  // namespace

std::unique_ptr<LoadBackend> make_loop_backend(Executor& executor, const SchedulerSettings& settings,
                                               const EngineBackendOptions& load) {
  return std::make_unique<LiveBackend>(executor, settings, load);
}

std::unique_ptr<LoadBackend> make_engine_backend(engine::Network& network, const SchedulerSettings& settings,
                                                 const EngineBackendOptions& load) {
  return std::make_unique<EngineBackend>(network, settings, load);
}

}  // namespace mw::serve
