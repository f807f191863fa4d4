// SPDX-License-Identifier: Apache-2.0
// Runs the scheduler and the executor on one serving thread and accepts requests from any thread. The HTTP server and
// the sweeps on the engine share it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"
#include "core/formats/results/bench_result.h"
#include "core/serve/scheduling/executor.h"
#include "core/serve/scheduling/load_timeline.h"

namespace mw::serve {

enum class FinishReason { length, stop, cancelled, failed };
struct TokenEvent {  // one generated token, or the end of the request
  int token = -1;    // -1: the request has finished
  FinishReason finish_reason = FinishReason::length;
  std::string error{};              // set if it failed
  formats::RequestResult timing{};  // set at the end; seconds since the loop began
  double probability = 0;           // as in SampledToken
  std::vector<TokenProbability> likeliest{};
  bool is_last() const { return token < 0; }
};
enum class LiveState { waiting, prefill, decode };  // waiting: also after a preemption
struct LiveRequest {                                // submitted and not finished
  RequestId id{};
  LiveState state = LiveState::waiting;
  double age_s = 0;
  int prompt_tokens = 0, output_tokens = 0, max_new_tokens = 0;
  std::optional<double> tokens_per_second{};  // after the first token
};
using OnTokenEvent = std::function<void(RequestId, const TokenEvent&)>;  // on the serving thread; must return quickly

class ServingLoop {
 public:
  // `max_queued`: requests that may wait. The executor must outlive the loop.
  ServingLoop(SchedulerSettings settings, Executor& executor, int max_queued);
  ~ServingLoop();  // cancels all requests and joins the thread
  // Throws Error BUSY (kind failed) if the queue is full or the loop is stopping, CONTEXT if the request can never fit,
  // and what Executor::begin throws. Any thread, like all functions below.
  RequestId submit(GenerationRequest request, OnTokenEvent on_event);
  void cancel(RequestId id);  // releases its blocks before the next step, then reports its end
  void drain();               // rejects new requests and returns when all others have finished
  struct State {
    SchedulerState scheduler;
    std::int64_t finished = 0, failed = 0, cancelled = 0, rejected = 0;
    std::int64_t prompt_tokens = 0, output_tokens = 0, steps = 0;
  };
  State state() const;
  std::vector<LiveRequest> live_requests() const;    // oldest first
  std::vector<formats::LoadSample> take_timeline();  // samples since the last call, at most one in 20 ms
  void clear_prefix_cache();
  double now() const { return seconds_since(start_time_); }  // seconds since the loop began

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    int prompt_len = 0, max_new_tokens = 0;
    bool is_waiting = true;
    OnTokenEvent on_event;
    formats::RequestResult timing;
    double last_token_s = 0;
  };
  struct Outcome {  // of one request in one step; delivered after the state has been published
    RequestId id{};
    TokenEvent event;
  };

  void run();
  bool wait_for_work();
  void admit_arrivals();
  void step();
  void fail(const std::vector<RequestId>& ids, const std::string& why);
  void fail_step(const Step& step, const std::string& why);
  void record_scheduling(const Step& step);
  void record_tokens(const StepResult& result, std::vector<Outcome>& outcomes);
  void finish(RequestId id, FinishReason reason, const std::string& error);
  void publish_state();
  void publish_live();                                                // needs the mutex
  static LiveRequest live_request(RequestId id, const Entry& entry);  // age_s: the time of its arrival

  const SchedulerSettings settings_;
  Executor& executor_;
  const int max_queued_;
  const Clock::time_point start_time_ = Clock::now();

  mutable std::mutex mutex_;  // guards the members up to `scheduler_`
  std::condition_variable wake_, all_finished_;
  std::vector<std::pair<ScheduledRequest, Entry>> arrived_;
  std::vector<RequestId> to_cancel_;
  bool stopping_ = false, quitting_ = false, clear_cache_ = false;
  std::int64_t next_id_ = 1;
  int in_flight_ = 0;  // submitted and not finished
  int pending_ = 0;    // of these, not yet known to the scheduler
  int free_slots_;     // requests that the next step can admit
  State state_;
  std::vector<LiveRequest> live_;  // known to the scheduler
  LoadTimeline timeline_;

  Scheduler scheduler_;  // used by the serving thread only, like `entries_`
  std::map<RequestId, Entry> entries_;
  std::thread thread_;
};

}  // namespace mw::serve

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::serve::LiveState>{"waiting", "prefill", "decode"};
