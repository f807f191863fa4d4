// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "core/base/error.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/scheduling/cost_model_executor.h"
#include "core/serve/scheduling/load_timeline.h"

namespace mw::serve {
namespace {

using formats::RequestResult;

struct SimulatedServer {
  Scheduler& scheduler;
  Executor& executor;
  const SchedulerSettings& settings;
  HostOverheads host;
  bool stop_at_preemption = false;
};

// Where the requests of a simulation come from, in order of arrival.
struct RequestFeed {
  std::function<TimedRequest()> next;
  size_t size = 0;
};

// Simulates one list of requests, with time 0 at its start. With `statistics` it keeps only requests in flight.
class LoadSimulation {
 public:
  LoadSimulation(const SimulatedServer& server, const LoadSettings& load, RequestFeed feed, std::int64_t first_id,
                 LoadStatistics* statistics)
      : server_(server),
        feed_(std::move(feed)),
        first_id_(first_id),
        closed_(load.arrival == Arrival::closed),
        max_in_flight_(load.concurrency),
        statistics_(statistics) {}

  void run(const LoadBackend::OnProgress& progress, std::stop_token stop) {
    while (!stop.stop_requested() && !was_preempted_) {
      send_due();
      admit_due();
      if (server_.scheduler.is_idle()) {
        busy_ = false;  // no step was planned ahead
        if (entering_.empty() && next_ == feed_.size) return timeline_.sample(now_, server_.scheduler.state(), tokens_);
        now_ = std::max(now_, entering_.empty() ? at(next_).timed.at_s : entering_.front().known_s);
        continue;
      }
      step();
      timeline_.add(now_, server_.scheduler.state(), tokens_);
      if (progress && done_ >= reported_) {
        progress(static_cast<long>(done_), static_cast<long>(feed_.size));
        reported_ = done_ + feed_.size / 100 + 1;
      }
    }
    for (size_t i = kept_from_; i < next_; ++i)
      if (at(i).is_sent && !at(i).is_finished) {
        server_.scheduler.abort(id_of(i));
        server_.executor.end(id_of(i));
      }
  }

  // Whether it ended at a preemption, see SimulatedServer::stop_at_preemption.
  bool was_preempted() const { return was_preempted_; }

  LoadResult take() {
    LoadResult result;
    const double first_s = kept_.empty() ? 0 : kept_.front().timed.at_s;
    double last_end = first_s;
    for (Kept& k : kept_) {
      if (!k.is_finished) continue;  // stopped before
      last_end = std::max(last_end, k.result.end_s);
      result.requests.push_back(std::move(k.result));
    }
    result.timeline = timeline_.take();
    result.duration_s = last_end - first_s;
    result.prefix_hits = prefix_hits();
    return result;
  }
  std::vector<formats::LoadSample> take_timeline() { return timeline_.take(); }
  double prefix_hits() const { return prompt_ > 0 ? cached_ / prompt_ : formats::kUnknown; }

 private:
  struct Kept {
    TimedRequest timed{};
    RequestResult result{};
    bool is_sent = false, is_finished = false;
  };

  RequestId id_of(size_t index) const { return RequestId{first_id_ + static_cast<std::int64_t>(index)}; }
  size_t index_of(RequestId id) const { return static_cast<size_t>(static_cast<std::int64_t>(id) - first_id_); }
  Kept& at(size_t index) {
    while (index >= kept_from_ + kept_.size()) kept_.push_back({.timed = feed_.next()});
    return kept_[index - kept_from_];
  }
  bool client_can_send() const { return max_in_flight_ == 0 || in_flight_ < max_in_flight_; }

  // Sends the requests that have arrived by now, at their time or when the client was free to send.
  void send_due() {
    for (; next_ < feed_.size && at(next_).timed.at_s <= now_; ++next_) held_.push_back(next_);
    for (; !held_.empty() && client_can_send(); held_.pop_front())
      send(held_.front(), std::max(at(held_.front()).timed.at_s, freed_s_));
  }

  void send(size_t i, double at_s) {
    Kept& kept = at(i);
    const TimedRequest& t = kept.timed;
    RequestResult& r = kept.result;
    kept.is_sent = true;
    r.sent_s = at_s;
    r.intended_s = closed_ ? at_s : t.at_s;
    r.prompt_tokens = t.prompt_len;
    ScheduledRequest request{
        .id = id_of(i), .prompt_len = t.prompt_len, .max_new_tokens = t.output_len, .arrival_s = at_s};
    if (server_.settings.prefix_cache == PrefixCache::on && server_.settings.kv_tracking == KvTracking::blocks)
      request.prompt_blocks =
          hash_synthetic_blocks(t.shared_seed, t.shared, t.prompt_seed, t.prompt_len, server_.settings.kv.block_size);
    server_.executor.begin(request.id, {});
    const double known_s = at_s + server_.host.request_s + server_.host.tokenize_s * t.prompt_len;
    const auto later = std::upper_bound(entering_.begin(), entering_.end(), known_s,
                                        [](double known, const SentRequest& sent) { return known < sent.known_s; });
    entering_.insert(later, {known_s, std::move(request)});
    ++in_flight_;
    if (statistics_) statistics_->sent(at_s);
  }

  // Adds the requests that the scheduler knew when it planned the next step.
  void admit_due() {
    const double known_until = busy_ && server_.host.scheduling == plan::Scheduling::ahead ? step_began_ : now_;
    for (; !entering_.empty() && entering_.front().known_s <= known_until; entering_.pop_front())
      server_.scheduler.add(std::move(entering_.front().request));
  }

  void step() {
    const Step step = server_.scheduler.next();
    if (server_.stop_at_preemption && !step.preempted.empty()) {
      was_preempted_ = true;
      return;
    }
    for (const RequestId id : step.preempted) ++at(index_of(id)).result.preemptions;
    for (const RequestId id : step.rejected) reject(index_of(id));
    if (step.items.empty()) {
      if (step.rejected.empty() && step.preempted.empty())
        fail("no request can be scheduled", server_.scheduler.state().waiting);
      return;
    }
    record_admissions(step.items);
    busy_ = true;
    step_began_ = now_;
    const StepResult result = server_.executor.run(step, server_.scheduler);
    if (!(result.seconds >= 0 && std::isfinite(result.seconds)))
      fail("the time of a step is not finite", result.seconds);
    now_ += result.seconds;
    server_.scheduler.advance(step);
    send_due();  // before the step frees the client
    record(result);
  }

  // New requests are the last items, possibly mixed with readmitted ones.
  void record_admissions(const std::vector<StepItem>& items) {
    for (auto item = items.rbegin(); item != items.rend(); ++item) {
      RequestResult& r = at(index_of(item->id)).result;
      if (std::isnan(r.scheduled_s)) {
        r.scheduled_s = now_;
        r.cached_tokens = server_.scheduler.cached_tokens(item->id);
      } else if (r.preemptions == 0) {
        return;
      }
    }
  }

  void record(const StepResult& result) {
    ended_.clear();
    float gap = 0;  // that most requests of a step have
    std::int64_t equal = 0;
    for (const SampledToken& s : result.sampled) {
      Kept& kept = at(index_of(s.id));
      RequestResult& r = kept.result;
      if (r.output_tokens++ == 0) {
        r.first_token_s = now_;
        if (!statistics_) r.gaps_ms.reserve(static_cast<size_t>(kept.timed.output_len - 1));
      } else if (const auto own = static_cast<float>(1e3 * (now_ - r.end_s)); !statistics_) {
        r.gaps_ms.push_back(own);
      } else {
        if (own != gap && equal > 0) statistics_->gaps(gap, std::exchange(equal, 0));
        gap = own;
        ++equal;
      }
      r.end_s = now_;
      if (r.output_tokens == kept.timed.output_len) ended_.push_back(s.id);
    }
    const auto sampled = static_cast<std::int64_t>(result.sampled.size());
    tokens_ += sampled;
    if (statistics_) {
      statistics_->gaps(gap, equal);
      statistics_->tokens(now_, sampled);
    }
    server_.scheduler.finish(ended_);
    for (const RequestId id : ended_) finish(id);
  }

  void reject(size_t i) {
    Kept& kept = at(i);
    RequestResult& r = kept.result;
    r.error = explain_rejection(server_.settings, kept.timed.prompt_len, kept.timed.output_len);
    if (r.error.empty()) r.error = "the KV cache is too small for the request";
    r.end_s = now_;
    finish(id_of(i));
  }

  void finish(RequestId id) {
    server_.executor.end(id);
    --in_flight_;
    ++done_;
    freed_s_ = now_;
    Kept& kept = at(index_of(id));
    kept.is_finished = true;
    prompt_ += kept.result.completed() ? kept.result.prompt_tokens : 0;
    cached_ += kept.result.cached_tokens;
    if (!statistics_) return;
    statistics_->finished(static_cast<std::int64_t>(index_of(id)), kept.result);
    for (; !kept_.empty() && kept_.front().is_finished; kept_.pop_front()) ++kept_from_;
  }

  [[noreturn]] void fail(const char* what, double found) const {
    throw Error({.id = "SERVE",
                 .message = std::string("the simulated server cannot continue: ") + what,
                 .found = number_text(found)},
                Error::Kind::failed);
  }

  struct SentRequest {
    double known_s = 0;  // to the scheduler
    ScheduledRequest request{};
  };

  const SimulatedServer server_;
  const RequestFeed feed_;
  std::int64_t first_id_;
  bool closed_;
  int max_in_flight_;  // 0: no limit
  LoadStatistics* statistics_;
  std::deque<Kept> kept_;  // from index kept_from_ on
  size_t kept_from_ = 0;
  std::deque<size_t> held_;           // wait in the client
  std::deque<SentRequest> entering_;  // sent, not yet known to the scheduler; by known_s
  std::vector<RequestId> ended_;
  LoadTimeline timeline_;
  size_t next_ = 0, done_ = 0, reported_ = 0;
  int in_flight_ = 0;
  double now_ = 0, freed_s_ = 0, step_began_ = 0;
  double prompt_ = 0, cached_ = 0;  // tokens of finished requests
  bool busy_ = false, was_preempted_ = false;
  std::int64_t tokens_ = 0;
};

RequestFeed feed_of(const std::vector<TimedRequest>& requests) {
  return {[at = requests.begin()]() mutable { return *at++; }, requests.size()};
}
RequestFeed feed_of(const LoadSettings& load, LoadStream::Part part) {
  const auto stream = std::make_shared<LoadStream>(load, part);
  return {[stream] { return stream->next(); }, static_cast<size_t>(stream->size())};
}

// Whether steps may depend on which blocks the cache holds.
enum class BlockIdentity { matters, does_not_matter };

class SimulatedBackend : public LoadBackend {
 public:
  SimulatedBackend(std::unique_ptr<Executor> executor, SchedulerSettings settings, HostOverheads host,
                   BlockIdentity identity)
      : settings_(settings),
        host_(host),
        identity_(identity),
        executor_(std::move(executor)),
        scheduler_(std::move(settings)) {}

  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    LoadResult result;
    play({.settings = load.settings,
          .feeds = [&] { return std::pair(feed_of(load.warmups), feed_of(load.requests)); },
          .statistics = [] { return nullptr; },
          .done = [&](LoadSimulation& simulation) { result = simulation.take(); }},
         progress, stop);
    return result;
  }

  std::optional<formats::BenchPoint> measure(const LoadSettings& settings, const Slo& slo, const OnProgress& progress,
                                             std::stop_token stop) override {
    std::optional<LoadStatistics> statistics;
    std::optional<formats::BenchPoint> point;
    const LoadSettings load = LoadStream(settings, LoadStream::Part::requests).settings();
    play({.settings = load,
          .feeds =
              [&] {
                return std::pair(feed_of(load, LoadStream::Part::warmups), feed_of(load, LoadStream::Part::requests));
              },
          .statistics = [&] { return &statistics.emplace(load, slo); },
          .done = [&](LoadSimulation& s) { point = statistics->take(s.take_timeline(), s.prefix_hits()); }},
         progress, stop);
    return stop.stop_requested() ? std::nullopt : point;
  }

 private:
  struct Play {
    LoadSettings settings;
    std::function<std::pair<RequestFeed, RequestFeed>()> feeds;  // warm-ups and requests, from their start
    std::function<LoadStatistics*()> statistics;
    std::function<void(LoadSimulation&)> done;
  };

  // Prompts that share no block find something in the cache only after a preemption. Until one happens, counting blocks
  // gives the same steps.
  bool can_count(const LoadSettings& load) const {
    if (identity_ == BlockIdentity::matters) return false;
    return settings_.prefix_cache == PrefixCache::off ||
           (load.prompts == PromptMode::salted && load.shared_prefix < settings_.kv.block_size);
  }

  void play(const Play& load, const OnProgress& progress, const std::stop_token& stop) {
    if (load.settings.prompts == PromptMode::salted) scheduler_.clear_prefix_cache();
    if (can_count(load.settings)) {
      SchedulerSettings counting = settings_;
      counting.kv_tracking = KvTracking::counts;
      Scheduler scheduler(counting);
      const bool until_preemption = settings_.prefix_cache == PrefixCache::on;
      if (simulate({scheduler, *executor_, counting, host_, until_preemption}, load, progress, stop)) return;
    }
    simulate({scheduler_, *executor_, settings_, host_}, load, progress, stop);
  }

  // Returns false if it ended at a preemption.
  bool simulate(const SimulatedServer& server, const Play& load, const OnProgress& progress,
                const std::stop_token& stop) {
    auto [warmups, requests] = load.feeds();
    const auto ids = [&](size_t count) { return std::exchange(next_id_, next_id_ + static_cast<std::int64_t>(count)); };
    LoadSimulation before(server, load.settings, warmups, ids(warmups.size), nullptr);
    before.run({}, stop);
    if (before.was_preempted()) return false;
    LoadSimulation simulation(server, load.settings, requests, ids(requests.size), load.statistics());
    simulation.run(progress, stop);
    if (simulation.was_preempted()) return false;
    load.done(simulation);
    return true;
  }

  SchedulerSettings settings_;
  HostOverheads host_;
  BlockIdentity identity_;
  std::unique_ptr<Executor> executor_;
  Scheduler scheduler_;
  std::int64_t next_id_ = 0;
};

KvLayout kv_layout(const plan::ServeStepModel::Kv& kv, int block_size) {
  KvLayout layout{.block_size = block_size, .groups = {}, .capacity = kv.capacity};
  for (const auto& group : kv.groups)
    layout.groups.push_back(
        {.window = group.window,
         .block_bytes = Bytes(static_cast<std::int64_t>(std::llround(group.bytes_per_token * block_size)))});
  return layout;
}

}  // namespace

std::unique_ptr<LoadBackend> make_simulated_backend(std::unique_ptr<Executor> executor, SchedulerSettings settings,
                                                    HostOverheads host) {
  return std::make_unique<SimulatedBackend>(std::move(executor), std::move(settings), host, BlockIdentity::matters);
}

std::unique_ptr<LoadBackend> make_cost_model_backend(const plan::Request& request, SchedulerSettings settings) {
  auto executor = std::make_unique<CostModelExecutor>(request);
  if (settings.kv.groups.empty()) settings.kv = kv_layout(executor->model().kv(), settings.kv.block_size);
  const HostOverheads host{.request_s = executor->model().request_seconds(),
                           .tokenize_s = executor->model().tokenize_seconds(),
                           .scheduling = request.serve.scheduling};
  return std::make_unique<SimulatedBackend>(std::move(executor), std::move(settings), host,
                                            BlockIdentity::does_not_matter);
}

}  // namespace mw::serve
