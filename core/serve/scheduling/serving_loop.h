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

struct Ask {
  Prompt prompt;
  int max_new = 16;
  int priority = 0;
};

enum class End { length, stop, cancelled, failed };
struct Answered {  // one token, or the end
  int token = -1;  // -1: the end
  End end = End::length;
  std::string error{};              // of failed
  formats::RequestResult timing{};  // of the end; seconds since the server began
};
using OnAnswer = std::function<void(RequestId, const Answered&)>;

class Live {
 public:
  // `queue`: requests that may wait; executor outlives it.
  Live(SchedulerSettings settings, Executor& executor, int queue);
  ~Live();  // cancels what is in flight, joins
  // Any thread. Throws Error BUSY (kind failed) where the queue is full or the server is stopping, CONTEXT for one that
  // is longer than max_model_len, what Executor::begin throws.
  RequestId submit(Ask ask, OnAnswer on_answer);
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
