// SPDX-License-Identifier: Apache-2.0
// Runs the scheduler and the executor on one serving thread and accepts requests from any thread. The HTTP server and
// the sweeps on the engine share it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

enum class FinishReason { length, stop, cancelled, failed };
struct TokenEvent {  // one generated token, or the end of the request
  int token = -1;    // -1: the request has finished
  FinishReason finish_reason = FinishReason::length;
  std::string error{};              // set if it failed
  formats::RequestResult timing{};  // set at the end; seconds since the loop began
  bool is_last() const { return token < 0; }
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
  std::vector<formats::LoadSample> take_timeline();  // samples since the last call, at most one in 20 ms
  void clear_prefix_cache();
  double now() const;  // seconds since the loop began

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::serve
