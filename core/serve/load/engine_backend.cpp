// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/engine_backend.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/base/error.h"
#include "core/engine/transformer/network.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/serve/scheduling/measured_steps.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUnlimited = 1 << 30;  // only the client limits the requests in flight
constexpr double kLate = 0.005;      // s; a client that sends later than this distorts the latencies

// Sends requests at their times, at most `max_in_flight` at once, and collects their results. Call run() on one thread;
// token events come on the serving thread.
class LoopLoadDriver {
 public:
  LoopLoadDriver(ServingLoop& loop, const std::vector<TimedRequest>& requests, int max_in_flight,
                 std::vector<GenerationRequest> prompts)
      : loop_(loop),
        requests_(requests),
        max_in_flight_(max_in_flight),
        prompts_(std::move(prompts)),
        results_(requests.size()) {}

  // Returns a result for each request, or none if the stop came first. Times are seconds since the start.
  std::vector<std::optional<formats::RequestResult>> run(options::Arrival arrival,
                                                         const LoadBackend::OnProgress& progress,
                                                         const std::stop_token& stop) {
    start_s_ = loop_.now();
    const Clock::time_point start_time = Clock::now();
    for (size_t i = 0; i < requests_.size() && !stop.stop_requested(); ++i) {
      const auto due =
          start_time + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(requests_[i].at_s));
      while (Clock::now() < due && !stop.stop_requested()) wait(due, stop, progress, [] { return false; });
      while (in_flight() >= max_in_flight_ && !stop.stop_requested())
        wait(Clock::now() + std::chrono::seconds(1), stop, progress, [&] { return in_flight_ < max_in_flight_; });
      if (!stop.stop_requested()) send(i, arrival);
    }
    while (in_flight() > 0 && !stop.stop_requested())
      wait(Clock::now() + std::chrono::seconds(1), stop, progress, [&] { return in_flight_ == 0; });
    if (stop.stop_requested())
      for (const RequestId id : sent_) loop_.cancel(id);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return in_flight_ == 0; });
    }
    if (!stop.stop_requested()) report(progress);  // the last may have finished after the last report
    return std::move(results_);
  }
  double start_s() const { return start_s_; }

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

  void send(size_t i, options::Arrival arrival) {
    {
      const std::lock_guard lock(mutex_);
      ++in_flight_;
    }
    const double at = loop_.now() - start_s_;
    try {
      sent_.push_back(loop_.submit(std::move(prompts_[i]), [this, i, arrival](RequestId, const TokenEvent& event) {
        if (event.is_last()) finished(i, arrival, event);
      }));
    } catch (const Error& error) {
      formats::RequestResult rejected{.intended_s = arrival == options::Arrival::closed ? at : requests_[i].at_s,
                                      .sent_s = at,
                                      .end_s = loop_.now() - start_s_};
      rejected.prompt_tokens = requests_[i].prompt_len;
      rejected.error = error.what();
      record(i, std::move(rejected));
    }
  }

  void finished(size_t i, options::Arrival arrival, const TokenEvent& event) {
    formats::RequestResult r = event.timing;
    for (double* at : {&r.sent_s, &r.first_token_s, &r.end_s, &r.scheduled_s}) *at -= start_s_;
    r.intended_s = arrival == options::Arrival::closed ? r.sent_s : requests_[i].at_s;
    record(i, event.finish_reason == FinishReason::cancelled ? std::nullopt : std::optional(std::move(r)));
  }

  void record(size_t i, std::optional<formats::RequestResult> result) {
    const std::lock_guard lock(mutex_);
    results_[i] = std::move(result);
    --in_flight_, ++done_;
    changed_.notify_all();
  }

  ServingLoop& loop_;
  const std::vector<TimedRequest>& requests_;
  const int max_in_flight_;
  std::vector<GenerationRequest> prompts_;
  std::vector<RequestId> sent_;
  double start_s_ = 0;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  int in_flight_ = 0;
  long done_ = 0;
  std::vector<std::optional<formats::RequestResult>> results_;
};

class LoopBackend : public LoadBackend {
 public:
  LoopBackend(Executor& executor, const SchedulerSettings& settings, const EngineBackendOptions& options)
      : options_(options), loop_(settings, executor, kUnlimited) {}

  void restart() override { loop_.clear_prefix_cache(); }
  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    const options::LoadSettings& s = load.settings;
    const int limit = s.concurrency > 0 ? s.concurrency : kUnlimited;
    if (s.prompts == options::PromptMode::salted) restart();
    if (!load.warmups.empty())
      LoopLoadDriver(loop_, load.warmups, limit, make_requests(load.warmups)).run(options::Arrival::burst, {}, stop);
    if (options_.on_warmed_up) options_.on_warmed_up();
    loop_.take_timeline();
    const SchedulerState before = loop_.state().scheduler;
    LoopLoadDriver driver(loop_, load.requests, limit, make_requests(load.requests));
    LoadResult result;
    double first = 0, last = 0;
    for (auto& r : driver.run(s.arrival, progress, stop)) {
      if (!r) continue;
      first = result.requests.empty() ? r->intended_s : std::min(first, r->intended_s);
      last = std::max(last, r->end_s);
      result.requests.push_back(std::move(*r));
    }
    result.duration_s = std::max(0.0, last - first);
    result.timeline = loop_.take_timeline();
    for (formats::LoadSample& sample : result.timeline) sample.time_s -= driver.start_s();
    std::erase_if(result.timeline, [](const auto& sample) { return sample.time_s < 0; });  // of the last warm-up
    const SchedulerState after = loop_.state().scheduler;
    if (after.prompt_tokens > before.prompt_tokens)
      result.prefix_hits = static_cast<double>(after.cached_tokens - before.cached_tokens) /
                           static_cast<double>(after.prompt_tokens - before.prompt_tokens);
    warn_if_late(s, result);
    return result;
  }

 private:
  std::vector<GenerationRequest> make_requests(const std::vector<TimedRequest>& requests) const {
    std::vector<GenerationRequest> all;
    for (const TimedRequest& r : requests)
      all.push_back({.prompt_ids = prompt_ids(r, options_.first_id, options_.vocab),
                     .sampling = {.max_new_tokens = r.output_len},
                     .adapter = options_.adapter ? kLoadAdapter : ""});
    return all;
  }

  static void warn_if_late(const options::LoadSettings& s, LoadResult& result) {
    std::vector<double> late;
    for (const formats::RequestResult& r : result.requests) late.push_back(r.sent_s - r.intended_s);
    if (s.arrival == options::Arrival::closed || late.empty()) return;
    const double p99 = formats::percentile_of(late, 99);
    if (p99 < kLate) return;
    const std::string late_by = std::to_string(std::lround(p99 * 1e3)) + " ms";
    if (s.concurrency > 0)
      result.warnings.push_back("requests waited for the client's limit of " + std::to_string(s.concurrency) +
                                " in flight: 99 % were sent within " + late_by + " of their time");
    else
      result.warnings.push_back("the client shares the processor with the engine and sent requests late: 99 % within " +
                                late_by + " of their time");
  }

  EngineBackendOptions options_;
  ServingLoop loop_;
};

class EngineBackend : public LoadBackend {
 public:
  EngineBackend(engine::Network& network, const SchedulerSettings& settings, const EngineBackendOptions& options)
      : executor_(network, settings), logged_(executor_, network.config()) {
    if (options.adapter) executor_.add_adapter(kLoadAdapter, *options.adapter);
    EngineBackendOptions logged = options;
    logged.on_warmed_up = [this] { logged_.take(); };
    backend_ = make_loop_backend(logged_, settings, logged);
  }
  void restart() override { backend_->restart(); }
  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    LoadResult result = backend_->run(load, progress, std::move(stop));
    result.steps = merge_similar_steps(time_logged_steps(logged_.take()));
    return result;
  }

 private:
  EngineExecutor executor_;
  LoggingExecutor logged_;
  std::unique_ptr<LoadBackend> backend_;
};

}  // namespace

std::unique_ptr<LoadBackend> make_loop_backend(Executor& executor, const SchedulerSettings& settings,
                                               const EngineBackendOptions& options) {
  return std::make_unique<LoopBackend>(executor, settings, options);
}

std::unique_ptr<LoadBackend> make_engine_backend(engine::Network& network, const SchedulerSettings& settings,
                                                 const EngineBackendOptions& options) {
  return std::make_unique<EngineBackend>(network, settings, options);
}

}  // namespace mw::serve
