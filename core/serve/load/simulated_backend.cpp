// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "core/base/error.h"
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
};

// Simulates one list of requests, with time 0 at its start.
class LoadSimulation {
 public:
  LoadSimulation(const SimulatedServer& server, const LoadSettings& load, const std::vector<TimedRequest>& requests,
                 std::int64_t first_id)
      : server_(server),
        requests_(requests),
        first_id_(first_id),
        closed_(load.arrival == Arrival::closed),
        max_in_flight_(load.concurrency),
        records_(requests.size()) {}

  void run(const LoadBackend::OnProgress& progress, std::stop_token stop) {
    while (!stop.stop_requested()) {
      send_due();
      admit_due();
      if (server_.scheduler.is_idle()) {
        busy_ = false;  // no step was planned ahead
        if (entering_.empty() && next_ == requests_.size())
          return timeline_.sample(now_, server_.scheduler.state(), tokens_);
        now_ = std::max(now_, entering_.empty() ? requests_[next_].at_s : entering_.front().known_s);
        continue;
      }
      step();
      timeline_.add(now_, server_.scheduler.state(), tokens_);
      if (progress && done_ >= reported_) {
        progress(static_cast<long>(done_), static_cast<long>(requests_.size()));
        reported_ = done_ + requests_.size() / 100 + 1;
      }
    }
    for (size_t i = 0; i < next_; ++i)
      if (records_[i].prompt_tokens > 0 && !is_finished(i)) {  // sent and unfinished
        server_.scheduler.abort(id_of(i));
        server_.executor.end(id_of(i));
      }
  }

  LoadResult take() {
    LoadResult result;
    double last_end = requests_.empty() ? 0 : requests_.front().at_s;
    double prompt = 0, cached = 0;
    for (size_t i = 0; i < records_.size(); ++i) {
      if (!is_finished(i)) continue;  // stopped before
      RequestResult& r = records_[i];
      last_end = std::max(last_end, r.end_s);
      prompt += r.completed() ? r.prompt_tokens : 0;
      cached += r.cached_tokens;
      result.requests.push_back(std::move(r));
    }
    result.timeline = timeline_.take();
    result.duration_s = requests_.empty() ? 0 : last_end - requests_.front().at_s;
    if (prompt > 0) result.prefix_hits = cached / prompt;
    return result;
  }

 private:
  RequestId id_of(size_t index) const { return RequestId{first_id_ + static_cast<std::int64_t>(index)}; }
  size_t index_of(RequestId id) const { return static_cast<size_t>(static_cast<std::int64_t>(id) - first_id_); }
  bool is_finished(size_t i) const {
    return !records_[i].completed() || records_[i].output_tokens == requests_[i].output_len;
  }
  bool client_can_send() const { return max_in_flight_ == 0 || in_flight_ < max_in_flight_; }

  // Sends the requests that have arrived by now, at their time or when the client was free to send.
  void send_due() {
    for (; next_ < requests_.size() && requests_[next_].at_s <= now_; ++next_) held_.push_back(next_);
    for (; !held_.empty() && client_can_send(); held_.pop_front())
      send(held_.front(), std::max(requests_[held_.front()].at_s, freed_s_));
  }

  void send(size_t i, double at_s) {
    const TimedRequest& t = requests_[i];
    RequestResult& r = records_[i];
    r.sent_s = at_s;
    r.intended_s = closed_ ? at_s : t.at_s;
    r.prompt_tokens = t.prompt_len;
    ScheduledRequest request{
        .id = id_of(i), .prompt_len = t.prompt_len, .max_new_tokens = t.output_len, .arrival_s = at_s};
    if (server_.settings.prefix_cache == PrefixCache::on)
      request.prompt_blocks =
          hash_synthetic_blocks(t.shared_seed, t.shared, t.prompt_seed, t.prompt_len, server_.settings.kv.block_size);
    server_.executor.begin(request.id, {});
    const double known_s = at_s + server_.host.request_s + server_.host.tokenize_s * t.prompt_len;
    const auto later = std::upper_bound(entering_.begin(), entering_.end(), known_s,
                                        [](double known, const SentRequest& sent) { return known < sent.known_s; });
    entering_.insert(later, {known_s, std::move(request)});
    ++in_flight_;
  }

  // Adds the requests that the scheduler knew when it planned the next step.
  void admit_due() {
    const double known_until = busy_ && server_.host.scheduling == plan::Scheduling::ahead ? step_began_ : now_;
    for (; !entering_.empty() && entering_.front().known_s <= known_until; entering_.pop_front())
      server_.scheduler.add(std::move(entering_.front().request));
  }

  void step() {
    const Step step = server_.scheduler.next();
    for (const RequestId id : step.preempted) ++records_[index_of(id)].preemptions;
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
      RequestResult& r = records_[index_of(item->id)];
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
    for (const SampledToken& s : result.sampled) {
      const size_t i = index_of(s.id);
      RequestResult& r = records_[i];
      if (r.output_tokens++ == 0) {
        r.first_token_s = now_;
        r.gaps_ms.reserve(static_cast<size_t>(requests_[i].output_len - 1));
      } else {
        r.gaps_ms.push_back(static_cast<float>(1e3 * (now_ - r.end_s)));
      }
      r.end_s = now_;
      if (r.output_tokens == requests_[i].output_len) ended_.push_back(s.id);
    }
    tokens_ += static_cast<std::int64_t>(result.sampled.size());
    server_.scheduler.finish(ended_);
    for (const RequestId id : ended_) finish(id);
  }

  void reject(size_t i) {
    RequestResult& r = records_[i];
    r.error = explain_rejection(server_.settings, requests_[i].prompt_len, requests_[i].output_len);
    if (r.error.empty()) r.error = "the KV cache is too small for the request";
    r.end_s = now_;
    finish(id_of(i));
  }

  void finish(RequestId id) {
    server_.executor.end(id);
    --in_flight_;
    ++done_;
    freed_s_ = now_;
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
  const std::vector<TimedRequest>& requests_;
  std::int64_t first_id_;
  bool closed_;
  int max_in_flight_;  // 0: no limit
  std::vector<RequestResult> records_;
  std::deque<size_t> held_;           // wait in the client
  std::deque<SentRequest> entering_;  // sent, not yet known to the scheduler; by known_s
  std::vector<RequestId> ended_;
  LoadTimeline timeline_;
  size_t next_ = 0, done_ = 0, reported_ = 0;
  int in_flight_ = 0;
  double now_ = 0, freed_s_ = 0, step_began_ = 0;
  bool busy_ = false;
  std::int64_t tokens_ = 0;
};

class SimulatedBackend : public LoadBackend {
 public:
  SimulatedBackend(std::unique_ptr<Executor> executor, SchedulerSettings settings, HostOverheads host)
      : settings_(settings), host_(host), executor_(std::move(executor)), scheduler_(std::move(settings)) {}

  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    if (load.settings.prompts == PromptMode::salted) scheduler_.clear_prefix_cache();
    simulate(load, load.warmups, {}, stop);
    return simulate(load, load.requests, progress, stop);
  }

 private:
  LoadResult simulate(const Load& load, const std::vector<TimedRequest>& requests, const OnProgress& progress,
                      std::stop_token stop) {
    LoadSimulation simulation({scheduler_, *executor_, settings_, host_}, load.settings, requests, next_id_);
    next_id_ += static_cast<std::int64_t>(requests.size());
    simulation.run(progress, std::move(stop));
    return simulation.take();
  }

  SchedulerSettings settings_;
  HostOverheads host_;
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
  return std::make_unique<SimulatedBackend>(std::move(executor), std::move(settings), host);
}

std::unique_ptr<LoadBackend> make_cost_model_backend(const plan::Request& request, SchedulerSettings settings) {
  auto executor = std::make_unique<CostModelExecutor>(request);
  if (settings.kv.groups.empty()) settings.kv = kv_layout(executor->model().kv(), settings.kv.block_size);
  const HostOverheads host{.request_s = executor->model().request_seconds(),
                           .tokenize_s = executor->model().tokenize_seconds(),
                           .scheduling = request.serve.scheduling};
  return make_simulated_backend(std::move(executor), std::move(settings), host);
}

}  // namespace mw::serve
