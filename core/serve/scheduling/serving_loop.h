// SPDX-License-Identifier: Apache-2.0
// A server's heart: scheduler and executor on a thread of their own, requests from any thread. Answers come token by
// token on the serving thread; what they call must be quick. Behind the HTTP server and the engine's sweeps alike.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/formats/results/bench_result.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

struct GenerationRequest {
  Prompt prompt;
  int max_new_tokens = 16;
  int priority = 0;
};

enum class FinishReason { length, stop, cancelled, failed };
struct TokenEvent {  // one token, or the end
  int token = -1;    // -1: the end
  FinishReason end = FinishReason::length;
  std::string error{};              // of failed
  formats::RequestResult timing{};  // of the end; seconds since the server began
};
using OnTokenEvent = std::function<void(RequestId, const TokenEvent&)>;

class ServingLoop {
 public:
  // `queue`: requests that may wait; executor outlives it.
  ServingLoop(SchedulerSettings settings, Executor& executor, int queue);
  ~ServingLoop();  // cancels what is in flight, joins
  // Any thread. Throws Error BUSY (kind failed) where the queue is full or the server is stopping, CONTEXT for one that
  // is longer than max_model_len, what Executor::begin throws.
  RequestId submit(GenerationRequest ask, OnTokenEvent on_answer);
  void cancel(RequestId id);  // its blocks are free before the next step; its end is reported
  void drain();               // no new ones; returns when the last is answered
  struct State {
    SchedulerState scheduler;
    std::int64_t finished = 0, failed = 0, cancelled = 0, refused = 0;
    std::int64_t prompt_tokens = 0, output_tokens = 0, steps = 0;
  };
  State state() const;                               // any thread
  std::vector<formats::LoadSample> take_timeline();  // since the last call, at most one per 20 ms
  void clear_prefix_cache();
  double now() const;  // seconds since it began

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::serve
