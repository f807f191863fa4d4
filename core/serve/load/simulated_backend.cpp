// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "core/plan/request/stack_profiles.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/load/server_simulation.h"
#include "core/serve/scheduling/load_timeline.h"

namespace mw::serve {
namespace {

// The defaults of SGLang's Model Gateway: --cache-threshold, --balance-abs-threshold, --balance-rel-threshold.
constexpr double kLeastMatch = 0.3;  // share of the prompt
constexpr int kUnevenBy = 64;        // requests
constexpr double kUnevenTimes = 1.5;

bool is_uneven(const std::vector<int>& in_flight) {
  const auto [least, most] = std::minmax_element(in_flight.begin(), in_flight.end());
  return *most - *least > kUnevenBy && *most > kUnevenTimes * *least;
}

}  // namespace

Router::Router(const Replicas& replicas)
    : routing_(replicas.routing), count_(static_cast<size_t>(replicas.count)), last_(count_ - 1) {}

size_t Router::route(const TimedRequest& request, const std::vector<int>& in_flight) {
  switch (routing_) {
    case options::Routing::round_robin:
      last_ = (last_ + 1) % count_;
      break;
    case options::Routing::least_loaded:
      last_ = least_loaded(in_flight, nullptr);
      break;
    case options::Routing::prefix_aware:
      last_ = prefix_aware(request, in_flight);
      break;
  }
  return last_;
}

void Router::begin_load() {
  last_ = count_ - 1;
}

size_t Router::least_loaded(const std::vector<int>& in_flight, const std::vector<bool>* allowed) {
  size_t best = count_;
  for (size_t i = 1; i <= count_; ++i) {
    const size_t at = (last_ + i) % count_;
    if (allowed && !(*allowed)[at]) continue;
    if (best == count_ || in_flight[at] < in_flight[best]) best = at;
  }
  return best;
}

size_t Router::prefix_aware(const TimedRequest& request, const std::vector<int>& in_flight) {
  if (request.shared < kLeastMatch * request.prompt_len) return least_loaded(in_flight, nullptr);
  const auto [known, is_new] = holders_.try_emplace(request.shared_seed, count_, false);
  const size_t at = least_loaded(in_flight, is_new || is_uneven(in_flight) ? nullptr : &known->second);
  known->second[at] = true;
  return at;
}

namespace {

using formats::RequestResult;

// Where the requests of a simulation come from, in order of arrival.
struct RequestFeed {
  std::function<TimedRequest()> next;
  std::function<TimedRequest(const SentRequest&)> restore;  // one that `next` returned
  size_t size = 0;
};

// Simulates one list of requests, with time 0 at its start: one client, whose requests a router sends to the servers.
class LoadSimulation {
 public:
  // `servers` have ids from first_id on, a range of feed.size each.
  LoadSimulation(const std::vector<SimulatedServer>& servers, Router& router, const options::LoadSettings& load,
                 RequestFeed feed, std::int64_t first_id, LoadStatistics* statistics)
      : feed_(std::move(feed)),
        router_(router),
        max_in_flight_(load.concurrency),
        statistics_(statistics),
        in_flight_(servers.size(), 0),
        events_s_(servers.size(), ServerSimulation::kNever) {
    router_.begin_load();
    for (const SimulatedServer& server : servers) {
      const ServerSimulation::Options options{
          .arrival = load.arrival, .first_id = first_id, .restore = feed_.restore, .statistics = statistics};
      servers_.push_back(std::make_unique<ServerSimulation>(server, options));
      first_id += static_cast<std::int64_t>(feed_.size);
    }
  }

  void run(const LoadBackend::OnProgress& progress, std::stop_token stop) {
    while (!stop.stop_requested() && !was_preempted_) {
      const auto first = std::min_element(events_s_.begin(), events_s_.end());
      const double event_s = *first, arrival_s = next_arrival_s();
      if (std::min(event_s, arrival_s) == ServerSimulation::kNever) return timeline_.sample(now_, together(), tokens_);
      if (arrival_s <= event_s)
        send(arrival_s);
      else
        proceed(static_cast<size_t>(first - events_s_.begin()));
      if (progress && done_ >= reported_) {
        progress(static_cast<long>(done_), static_cast<long>(feed_.size));
        reported_ = done_ + feed_.size / 100 + 1;
      }
    }
    for (const auto& server : servers_) server->abandon();
  }

  // Whether it ended at a preemption, see SimulatedServer::stop_at_preemption.
  bool was_preempted() const { return was_preempted_; }

  LoadResult take_result() {
    std::vector<std::pair<std::uint32_t, RequestResult>> finished;
    for (const auto& server : servers_) server->take_results(finished);
    std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    LoadResult result;
    double last_end = first_s_;
    for (auto& [index, request] : finished) {
      last_end = std::max(last_end, request.end_s);
      result.requests.push_back(std::move(request));
    }
    result.timeline = timeline_.take();
    result.duration_s = last_end - first_s_;
    result.prefix_hits = prefix_hits();
    return result;
  }
  std::vector<formats::LoadSample> take_timeline() { return timeline_.take(); }
  double prefix_hits() const {
    double prompt = 0, cached = 0;
    for (const auto& server : servers_) {
      prompt += server->cache_use().prompt;
      cached += server->cache_use().cached;
    }
    return prompt > 0 ? cached / prompt : formats::kUnknown;
  }

 private:
  bool client_can_send() const { return max_in_flight_ == 0 || all_in_flight_ < max_in_flight_; }
  // Requests are sent at their time, or when the client was free to send.
  double next_arrival_s() {
    if (next_ == feed_.size || !client_can_send()) return ServerSimulation::kNever;
    if (!upcoming_) {
      upcoming_ = feed_.next();
      if (next_ == 0) first_s_ = upcoming_->at_s;
    }
    return std::max(upcoming_->at_s, freed_s_);
  }

  void send(double at_s) {
    const size_t server = router_.route(*upcoming_, in_flight_);
    servers_[server]->send(static_cast<std::uint32_t>(next_++), *upcoming_, at_s);
    upcoming_.reset();
    events_s_[server] = servers_[server]->next_s();
    ++in_flight_[server];
    ++all_in_flight_;
    if (statistics_) statistics_->sent(at_s);
  }

  void proceed(size_t i) {
    ServerSimulation& server = *servers_[i];
    const std::int64_t tokens = server.tokens();
    const ServerSimulation::Event event = server.proceed();
    events_s_[i] = server.next_s();
    now_ = server.now_s();
    was_preempted_ = server.was_preempted();
    in_flight_[i] -= event.ended;
    all_in_flight_ -= event.ended;
    done_ += static_cast<size_t>(event.ended);
    if (event.ended > 0) freed_s_ = now_;
    tokens_ += server.tokens() - tokens;
    if (event.is_step && timeline_.is_due(now_)) timeline_.sample(now_, together(), tokens_);
  }

  // The state of all servers.
  SchedulerState together() const {
    SchedulerState all;
    for (const auto& server : servers_) {
      all.running += server->state().running;
      all.waiting += server->state().waiting;
      all.kv_used += server->state().kv_used / static_cast<double>(servers_.size());
    }
    return all;
  }

  const RequestFeed feed_;
  Router& router_;
  int max_in_flight_;  // 0: no limit
  LoadStatistics* statistics_;
  std::vector<std::unique_ptr<ServerSimulation>> servers_;
  std::vector<int> in_flight_;    // by server
  std::vector<double> events_s_;  // the time of the next event, by server
  LoadTimeline timeline_;
  std::optional<TimedRequest> upcoming_;
  size_t next_ = 0, done_ = 0, reported_ = 0;
  int all_in_flight_ = 0;
  double first_s_ = 0, now_ = 0, freed_s_ = 0;
  std::int64_t tokens_ = 0;
  bool was_preempted_ = false;
};

RequestFeed feed_of(const std::vector<TimedRequest>& requests) {
  return {[at = requests.begin()]() mutable { return *at++; },
          [&requests](const SentRequest& sent) { return requests[sent.index]; }, requests.size()};
}
RequestFeed feed_of(const options::LoadSettings& load, LoadStream::Part part) {
  const auto stream = std::make_shared<LoadStream>(load, part);
  return {[stream] { return stream->next(); },
          [stream](const SentRequest& sent) {
            return stream->restore(static_cast<std::int64_t>(sent.index), sent.at_s, sent.prompt_len, sent.output_len);
          },
          static_cast<size_t>(stream->size())};
}

// Whether steps may depend on which blocks the cache holds.
enum class BlockIdentity { matters, does_not_matter };

using Schedulers = std::vector<std::unique_ptr<Scheduler>>;
Schedulers schedulers_of(const SchedulerSettings& settings, size_t count) {
  Schedulers out;
  for (size_t i = 0; i < count; ++i) out.push_back(std::make_unique<Scheduler>(settings));
  return out;
}

class SimulatedBackend : public LoadBackend {
 public:
  SimulatedBackend(std::unique_ptr<Executor> executor, const SchedulerSettings& settings, HostOverheads host,
                   BlockIdentity identity, const Replicas& replicas)
      : settings_(settings), host_(host), identity_(identity), replicas_(replicas), executor_(std::move(executor)) {
    restart();
  }

  void restart() override {
    schedulers_ = schedulers_of(settings_, static_cast<size_t>(replicas_.count));
    router_.emplace(replicas_);
    next_id_ = 0;
  }

  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    LoadResult result;
    play({.settings = load.settings,
          .feeds = [&] { return std::pair(feed_of(load.warmups), feed_of(load.requests)); },
          .statistics = [] { return nullptr; },
          .done = [&](LoadSimulation& simulation) { result = simulation.take_result(); }},
         progress, stop);
    return result;
  }

  std::optional<formats::BenchPoint> measure(const options::LoadSettings& settings, const options::Slo& slo,
                                             const OnProgress& progress, std::stop_token stop) override {
    std::optional<LoadStatistics> statistics;
    std::optional<formats::BenchPoint> point;
    const options::LoadSettings load = LoadStream(settings, LoadStream::Part::requests).settings();
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
    options::LoadSettings settings;
    std::function<std::pair<RequestFeed, RequestFeed>()> feeds;  // warm-ups and requests, from their start
    std::function<LoadStatistics*()> statistics;
    std::function<void(LoadSimulation&)> done;
  };

  // Prompts that share no block find something in the cache only after a preemption. Until one happens, counting blocks
  // gives the same steps.
  bool can_count(const options::LoadSettings& load) const {
    if (identity_ == BlockIdentity::matters) return false;
    return settings_.prefix_cache == PrefixCache::off ||
           (load.prompts == options::PromptMode::salted && load.shared_prefix < settings_.kv.block_size);
  }

  void play(const Play& load, const OnProgress& progress, const std::stop_token& stop) {
    if (load.settings.prompts == options::PromptMode::salted) restart();
    if (can_count(load.settings)) {
      SchedulerSettings counting = settings_;
      counting.kv_tracking = KvTracking::counts;
      const Schedulers schedulers = schedulers_of(counting, schedulers_.size());
      const bool until_preemption = settings_.prefix_cache == PrefixCache::on;
      if (simulate(servers(schedulers, counting, until_preemption), load, progress, stop)) return;
    }
    simulate(servers(schedulers_, settings_, false), load, progress, stop);
  }

  std::vector<SimulatedServer> servers(const Schedulers& schedulers, const SchedulerSettings& settings,
                                       bool until_preemption) const {
    std::vector<SimulatedServer> out;
    for (const auto& scheduler : schedulers) out.push_back({*scheduler, *executor_, settings, host_, until_preemption});
    return out;
  }

  // Returns false if it ended at a preemption.
  bool simulate(const std::vector<SimulatedServer>& servers, const Play& load, const OnProgress& progress,
                const std::stop_token& stop) {
    auto [warmups, requests] = load.feeds();
    const auto ids = [&](size_t count) {
      return std::exchange(next_id_, next_id_ + static_cast<std::int64_t>(count * servers.size()));
    };
    Router router = *router_;
    LoadSimulation before(servers, router, load.settings, warmups, ids(warmups.size), nullptr);
    before.run({}, stop);
    if (before.was_preempted()) return false;
    LoadSimulation simulation(servers, router, load.settings, requests, ids(requests.size), load.statistics());
    simulation.run(progress, stop);
    if (simulation.was_preempted()) return false;
    router_ = std::move(router);
    load.done(simulation);
    return true;
  }

  SchedulerSettings settings_;
  HostOverheads host_;
  BlockIdentity identity_;
  Replicas replicas_;
  std::unique_ptr<Executor> executor_;
  Schedulers schedulers_;  // by replica
  std::optional<Router> router_;
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

std::unique_ptr<LoadBackend> make_simulated_backend(std::unique_ptr<Executor> executor,
                                                    const SchedulerSettings& settings, HostOverheads host,
                                                    const Replicas& replicas) {
  return std::make_unique<SimulatedBackend>(std::move(executor), settings, host, BlockIdentity::matters, replicas);
}

std::unique_ptr<LoadBackend> make_cost_model_backend(const plan::Request& request, SchedulerSettings settings,
                                                     const Replicas& replicas) {
  auto executor = std::make_unique<CostModelExecutor>(request);
  using Stack = plan::ServerScheduling;
  const Stack stack = plan::server_scheduling(request.stack);
  settings.prefill_steps =
      stack.prefill_steps == Stack::PrefillSteps::separate ? PrefillSteps::separate : PrefillSteps::mixed;
  settings.kv_reservation =
      stack.kv_admission == Stack::KvAdmission::whole ? KvReservation::whole : KvReservation::computed;
  settings.max_prefills = stack.max_prefills;
  if (settings.kv.groups.empty()) settings.kv = kv_layout(executor->model().kv(), settings.kv.block_size);
  const HostOverheads host{.request_s = executor->model().request_seconds(),
                           .tokenize_s = executor->model().tokenize_seconds(),
                           .scheduling = request.serve.scheduling};
  return std::make_unique<SimulatedBackend>(std::move(executor), settings, host, BlockIdentity::does_not_matter,
                                            replicas);
}

}  // namespace mw::serve
