// SPDX-License-Identifier: Apache-2.0
// One simulated server in virtual time: the real scheduler with steps that an executor times. Whoever owns it sends it
// requests and lets it proceed from event to event, so that several servers can share one clock. Not thread-safe.
#pragma once
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core/serve/load/load_statistics.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

struct SimulatedServer {
  Scheduler& scheduler;
  Executor& executor;
  const SchedulerSettings& settings;
  HostOverheads host;
  bool stop_at_preemption = false;
};

// All that is kept of a request until the scheduler takes it: an overloaded server has millions.
struct SentRequest {
  std::uint32_t index = 0;     // in order of arrival, of the whole load
  std::uint32_t position = 0;  // in order of arrival at this server
  double at_s = 0, sent_s = 0;
  int prompt_len = 0, output_len = 0;
};

// With `statistics` it keeps the results only of requests that the scheduler has taken and that have not ended.
class ServerSimulation : public OutsideQueue {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Options {
    options::Arrival arrival = options::Arrival::poisson;
    std::int64_t first_id = 0;                                // of the requests of this server
    std::function<TimedRequest(const SentRequest&)> restore;  // the request as it was sent
    LoadStatistics* statistics = nullptr;
  };
  ServerSimulation(const SimulatedServer& server, Options options);
  ~ServerSimulation() override;
  ServerSimulation(const ServerSimulation&) = delete;
  ServerSimulation& operator=(const ServerSimulation&) = delete;

  // A request that the client sends at `sent_s`, not before the last event.
  void send(std::uint32_t index, const TimedRequest& request, double sent_s);
  // The time of the next event: the end of the running step, or the start of one; kNever if there is nothing to do.
  double next_s() const;
  struct Event {
    int ended = 0;         // requests
    bool is_step = false;  // a step has ended, or could compute nothing
  };
  Event proceed();
  // Removes the requests that have not ended.
  void abandon();

  double now_s() const { return now_; }  // of the last event
  std::int64_t tokens() const { return tokens_; }
  const SchedulerState& state() const { return server_.scheduler.state(); }
  // Whether it ended at a preemption, see SimulatedServer::stop_at_preemption.
  bool was_preempted() const { return was_preempted_; }
  struct CacheUse {
    double prompt = 0, cached = 0;  // tokens of finished requests
  };
  CacheUse cache_use() const { return {prompt_, cached_}; }
  // Appends the finished requests with their index.
  void take_results(std::vector<std::pair<std::uint32_t, formats::RequestResult>>& out);

  size_t size() const override { return known_.size() + ranked_.size(); }
  Rank first() const override { return {0, (ranked_.empty() ? known_.front() : ranked_.top()).sent_s}; }
  ScheduledRequest take() override;

 private:
  struct Kept {
    formats::RequestResult result{};
    std::uint32_t index = 0;
    int output_len = 0;
    bool is_finished = false;
  };
  static constexpr std::int32_t kNotTaken = -1, kRemoved = -2;
  enum class Phase { idle, ready, running };  // ready: a step can start now

  RequestId id_of(size_t position) const { return RequestId{options_.first_id + static_cast<std::int64_t>(position)}; }
  size_t position_of(RequestId id) const {
    return static_cast<size_t>(static_cast<std::int64_t>(id) - options_.first_id);
  }
  Kept& at(size_t position) { return kept_[static_cast<size_t>(slots_[position - first_slot_])]; }
  Kept& keep(const SentRequest& sent);
  void remove(size_t position);
  double known_s(const SentRequest& sent) const {  // to the scheduler
    return sent.sent_s + server_.host.request_s + server_.host.tokenize_s * sent.prompt_len;
  }
  bool is_known_later(const SentRequest& a, const SentRequest& b) const;
  bool ranks_after(const SentRequest& a, const SentRequest& b) const;
  void admit_due();
  void begin_step();
  void end_step();
  void record_admissions(const std::vector<StepItem>& items);
  void record();
  void reject(size_t position);
  void finish(RequestId id);
  [[noreturn]] void fail(const char* what, double found) const;

  const SimulatedServer server_;
  const Options options_;
  std::deque<Kept> kept_;
  std::vector<std::int32_t> vacant_;  // free entries of kept_
  std::deque<std::int32_t> slots_;  // of the requests from position first_slot_ on: entry of kept_, kNotTaken, kRemoved
  size_t first_slot_ = 0;
  using Later = std::function<bool(const SentRequest&, const SentRequest&)>;
  using SentQueue = std::priority_queue<SentRequest, std::deque<SentRequest>, Later>;
  SentQueue unknown_{[this](const SentRequest& a, const SentRequest& b) { return is_known_later(a, b); }};
  // Those that the scheduler can take: in order, or under options::SchedulingPolicy::priority by rank.
  std::deque<SentRequest> known_;
  SentQueue ranked_{[this](const SentRequest& a, const SentRequest& b) { return ranks_after(a, b); }};
  std::vector<RequestId> ended_;
  Phase phase_ = Phase::idle;
  Step step_;
  StepResult result_;
  std::uint32_t sends_ = 0;
  Event event_;  // that happens now
  double now_ = 0, step_began_ = 0, step_ends_ = 0;
  double prompt_ = 0, cached_ = 0;  // tokens of finished requests
  bool busy_ = false, was_preempted_ = false;
  std::int64_t tokens_ = 0;
};

}  // namespace mw::serve
