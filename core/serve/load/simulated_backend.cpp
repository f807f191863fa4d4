// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/plan/request/server_scheduling.h"
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

// All that is kept of a request until the scheduler takes it: an overloaded server has millions.
struct SentRequest {
  size_t index = 0;  // in order of arrival
  double at_s = 0, sent_s = 0;
  int prompt_len = 0, output_len = 0;
};

// Where the requests of a simulation come from, in order of arrival.
struct RequestFeed {
  std::function<TimedRequest()> next;
  std::function<TimedRequest(const SentRequest&)> restore;  // one that `next` returned
  size_t size = 0;
};

// Simulates one list of requests, with time 0 at its start. With `statistics` it keeps the results only of requests
// that the scheduler has taken and that have not ended.
class LoadSimulation : public OutsideQueue {
 public:
  LoadSimulation(const SimulatedServer& server, const LoadSettings& load, RequestFeed feed, std::int64_t first_id,
                 LoadStatistics* statistics)
      : server_(server),
        feed_(std::move(feed)),
        first_id_(first_id),
        closed_(load.arrival == Arrival::closed),
        max_in_flight_(load.concurrency),
        statistics_(statistics) {}
  ~LoadSimulation() override { server_.scheduler.set_outside_queue(nullptr); }
  LoadSimulation(const LoadSimulation&) = delete;
  LoadSimulation& operator=(const LoadSimulation&) = delete;

  void run(const LoadBackend::OnProgress& progress, std::stop_token stop) {
    server_.scheduler.set_outside_queue(this);
    while (!stop.stop_requested() && !was_preempted_) {
      send_due();
      admit_due();
      if (server_.scheduler.is_idle()) {
        busy_ = false;  // no step was planned ahead
        if (sent_.empty() && next_ == feed_.size) return timeline_.sample(now_, server_.scheduler.state(), tokens_);
        now_ = std::max(now_, sent_.empty() ? upcoming().at_s : known_s(sent_.front()));
        continue;
      }
      step();
      timeline_.add(now_, server_.scheduler.state(), tokens_);
      if (progress && done_ >= reported_) {
        progress(static_cast<long>(done_), static_cast<long>(feed_.size));
        reported_ = done_ + feed_.size / 100 + 1;
      }
    }
    for (const SentRequest& waiting : sent_) server_.executor.end(id_of(waiting.index));
    sent_.clear();
    known_ = 0;
    for (; !ranked_.empty(); ranked_.pop()) server_.executor.end(id_of(ranked_.top().index));
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i] >= 0 && !at(first_slot_ + i).is_finished) {
        server_.scheduler.abort(id_of(first_slot_ + i));
        server_.executor.end(id_of(first_slot_ + i));
      }
  }

  size_t size() const override { return known_ + ranked_.size(); }
  Rank first() const override { return {0, (ranked_.empty() ? sent_.front() : ranked_.top()).sent_s}; }
  ScheduledRequest take() override {
    const SentRequest sent = ranked_.empty() ? sent_.front() : ranked_.top();
    if (ranked_.empty()) {
      sent_.pop_front();
      --known_;
    } else {
      ranked_.pop();
    }
    RequestResult& r = keep(sent.index, sent.output_len).result;
    r.sent_s = sent.sent_s;
    r.intended_s = closed_ ? sent.sent_s : sent.at_s;
    r.prompt_tokens = sent.prompt_len;
    ScheduledRequest request{.id = id_of(sent.index),
                             .prompt_len = sent.prompt_len,
                             .max_new_tokens = sent.output_len,
                             .arrival_s = sent.sent_s};
    if (server_.settings.prefix_cache == PrefixCache::on && server_.settings.kv_tracking == KvTracking::blocks) {
      const TimedRequest t = feed_.restore(sent);
      request.prompt_blocks =
          hash_synthetic_blocks(t.shared_seed, t.shared, t.prompt_seed, t.prompt_len, server_.settings.kv.block_size);
    }
    return request;
  }

  // Whether it ended at a preemption, see SimulatedServer::stop_at_preemption.
  bool was_preempted() const { return was_preempted_; }

  LoadResult take_result() {
    LoadResult result;
    double last_end = first_s_;
    for (const std::int32_t slot : slots_) {
      if (slot < 0) continue;
      Kept& k = kept_[static_cast<size_t>(slot)];
      if (!k.is_finished) continue;  // stopped before
      last_end = std::max(last_end, k.result.end_s);
      result.requests.push_back(std::move(k.result));
    }
    result.timeline = timeline_.take();
    result.duration_s = last_end - first_s_;
    result.prefix_hits = prefix_hits();
    return result;
  }
  std::vector<formats::LoadSample> take_timeline() { return timeline_.take(); }
  double prefix_hits() const { return prompt_ > 0 ? cached_ / prompt_ : formats::kUnknown; }

 private:
  struct Kept {
    RequestResult result{};
    int output_len = 0;
    bool is_finished = false;
  };
  static constexpr std::int32_t kNotTaken = -1, kRemoved = -2;

  RequestId id_of(size_t index) const { return RequestId{first_id_ + static_cast<std::int64_t>(index)}; }
  size_t index_of(RequestId id) const { return static_cast<size_t>(static_cast<std::int64_t>(id) - first_id_); }
  Kept& at(size_t index) { return kept_[static_cast<size_t>(slots_[index - first_slot_])]; }
  Kept& keep(size_t index, int output_len) {
    if (index >= first_slot_ + slots_.size()) slots_.resize(index - first_slot_ + 1, kNotTaken);
    std::int32_t& slot = slots_[index - first_slot_];
    if (vacant_.empty()) {
      slot = static_cast<std::int32_t>(kept_.size());
      kept_.emplace_back();
    } else {
      slot = vacant_.back();
      vacant_.pop_back();
    }
    return kept_[static_cast<size_t>(slot)] = {.output_len = output_len};
  }
  void remove(size_t index) {
    std::int32_t& slot = slots_[index - first_slot_];
    vacant_.push_back(std::exchange(slot, kRemoved));
    for (; !slots_.empty() && slots_.front() == kRemoved; slots_.pop_front()) ++first_slot_;
  }
  const TimedRequest& upcoming() {  // the request `next_`
    if (!upcoming_) {
      upcoming_ = feed_.next();
      if (next_ == 0) first_s_ = upcoming_->at_s;
    }
    return *upcoming_;
  }
  double known_s(const SentRequest& sent) const {  // to the scheduler
    return sent.sent_s + server_.host.request_s + server_.host.tokenize_s * sent.prompt_len;
  }
  // The order of SchedulingPolicy::priority, of requests of equal priority.
  bool ranks_after(const SentRequest& a, const SentRequest& b) const {
    return std::tuple(a.sent_s, known_s(a), a.index) > std::tuple(b.sent_s, known_s(b), b.index);
  }
  bool client_can_send() const { return max_in_flight_ == 0 || in_flight_ < max_in_flight_; }

  // Sends the requests that have arrived by now, at their time or when the client was free to send.
  void send_due() {
    const size_t before = sent_.size();
    for (; next_ < feed_.size && client_can_send() && upcoming().at_s <= now_; ++next_) {
      const TimedRequest& t = *upcoming_;
      const double at_s = std::max(t.at_s, freed_s_);
      sent_.push_back({next_, t.at_s, at_s, t.prompt_len, t.output_len});
      upcoming_.reset();
      server_.executor.begin(id_of(next_), {});
      ++in_flight_;
      if (statistics_) statistics_->sent(at_s);
    }
    order_by_known(before);
  }

  // Merges the requests from index `from` on into those that the scheduler does not know yet.
  void order_by_known(size_t from) {
    const auto earlier = [this](const SentRequest& a, const SentRequest& b) { return known_s(a) < known_s(b); };
    const auto unknown = sent_.begin() + static_cast<std::ptrdiff_t>(known_);
    const auto added = sent_.begin() + static_cast<std::ptrdiff_t>(from);
    if (std::is_sorted(added == unknown ? added : added - 1, sent_.end(), earlier)) return;
    std::stable_sort(added, sent_.end(), earlier);
    std::inplace_merge(std::upper_bound(unknown, added, *added, earlier), added, sent_.end(), earlier);
  }

  // The scheduler can take the requests that it knew when it planned the next step.
  void admit_due() {
    const double known_until = busy_ && server_.host.scheduling == plan::Scheduling::ahead ? step_began_ : now_;
    while (known_ < sent_.size() && known_s(sent_[known_]) <= known_until) ++known_;
    if (server_.settings.policy != SchedulingPolicy::priority) return;
    for (; known_ > 0; --known_) {
      ranked_.push(sent_.front());
      sent_.pop_front();
    }
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
        if (!statistics_) r.gaps_ms.reserve(static_cast<size_t>(kept.output_len - 1));
      } else if (const auto own = static_cast<float>(1e3 * (now_ - r.end_s)); !statistics_) {
        r.gaps_ms.push_back(own);
      } else {
        if (own != gap && equal > 0) statistics_->gaps(gap, std::exchange(equal, 0));
        gap = own;
        ++equal;
      }
      r.end_s = now_;
      if (r.output_tokens == kept.output_len) ended_.push_back(s.id);
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
    r.error = explain_rejection(server_.settings, r.prompt_tokens, kept.output_len);
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
    remove(index_of(id));
  }

  [[noreturn]] void fail(const char* what, double found) const {
    throw Error({.id = "SERVE",
                 .message = std::string("the simulated server cannot continue: ") + what,
                 .found = number_text(found)},
                Error::Kind::failed);
  }

  const SimulatedServer server_;
  const RequestFeed feed_;
  std::int64_t first_id_;
  bool closed_;
  int max_in_flight_;  // 0: no limit
  LoadStatistics* statistics_;
  std::deque<Kept> kept_;
  std::vector<std::int32_t> vacant_;  // free entries of kept_
  std::deque<std::int32_t> slots_;  // of the requests from index first_slot_ on: entry of kept_, or kNotTaken, kRemoved
  size_t first_slot_ = 0;
  std::optional<TimedRequest> upcoming_;
  std::deque<SentRequest> sent_;  // not yet taken by the scheduler; by known_s
  size_t known_ = 0;              // the first of sent_: those that the scheduler can take
  // Under SchedulingPolicy::priority those that it can take, instead of the first of sent_.
  using RanksAfter = std::function<bool(const SentRequest&, const SentRequest&)>;
  std::priority_queue<SentRequest, std::deque<SentRequest>, RanksAfter> ranked_{
      [this](const SentRequest& a, const SentRequest& b) { return ranks_after(a, b); }};
  std::vector<RequestId> ended_;
  LoadTimeline timeline_;
  size_t next_ = 0, done_ = 0, reported_ = 0;
  int in_flight_ = 0;
  double first_s_ = 0, now_ = 0, freed_s_ = 0, step_began_ = 0;
  double prompt_ = 0, cached_ = 0;  // tokens of finished requests
  bool busy_ = false, was_preempted_ = false;
  std::int64_t tokens_ = 0;
};

RequestFeed feed_of(const std::vector<TimedRequest>& requests) {
  return {[at = requests.begin()]() mutable { return *at++; },
          [&requests](const SentRequest& sent) { return requests[sent.index]; }, requests.size()};
}
RequestFeed feed_of(const LoadSettings& load, LoadStream::Part part) {
  const auto stream = std::make_shared<LoadStream>(load, part);
  return {[stream] { return stream->next(); },
          [stream](const SentRequest& sent) {
            return stream->restore(static_cast<std::int64_t>(sent.index), sent.at_s, sent.prompt_len, sent.output_len);
          },
          static_cast<size_t>(stream->size())};
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
          .done = [&](LoadSimulation& simulation) { result = simulation.take_result(); }},
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
  return std::make_unique<SimulatedBackend>(std::move(executor), std::move(settings), host,
                                            BlockIdentity::does_not_matter);
}

}  // namespace mw::serve
