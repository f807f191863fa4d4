// SPDX-License-Identifier: GPL-3.0-or-later
// An executor without a model: every request gets the tokens of a script in a loop. Everything around it (scheduling,
// blocks, cancellation) is real.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

class ScriptedExecutor : public Executor {
 public:
  std::vector<int> script{65};
  int stop_after = -1;  // tokens after which the model samples a stop id, for requests that have one; -1: never
  std::chrono::microseconds step_time{0};  // duration of a step
  std::atomic<bool> failing{false};
  int bad_token = -1;  // begin() rejects prompts that contain it

  void begin(RequestId id, const GenerationRequest& request) override {
    for (const int token : request.prompt_ids)
      if (token == bad_token) throw Error({.id = "REQUEST", .message = "a bad token", .place = "prompt"});
    const std::lock_guard lock(mutex_);
    open_[id] = {request, 0};
    last_ = request;
  }
  void end(RequestId id) override {
    const std::lock_guard lock(mutex_);
    open_.erase(id);
  }
  StepResult run(const Step& step, const Scheduler&) override {
    if (step_time.count() > 0) std::this_thread::sleep_for(step_time);
    if (failing) throw std::runtime_error("the machine is on fire");
    const std::lock_guard lock(mutex_);
    largest_step_ = std::max(largest_step_, step.items.size());
    StepResult result;
    for (const StepItem& item : step.items) {
      if (!item.samples) continue;
      Open& open = open_.at(item.id);
      const std::vector<int>& stop_ids = open.request.sampling.stop_ids;
      const bool is_stop = stop_after >= 0 && open.tokens >= stop_after && !stop_ids.empty();
      const int token = is_stop ? stop_ids.front() : script[static_cast<size_t>(open.tokens) % script.size()];
      ++open.tokens;
      result.sampled.push_back({item.id, token, is_stop});
    }
    return result;
  }
  size_t open() const {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }
  size_t largest_step() const {  // items
    const std::lock_guard lock(mutex_);
    return largest_step_;
  }
  GenerationRequest last_request() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  struct Open {
    GenerationRequest request;
    int tokens = 0;
  };
  mutable std::mutex mutex_;
  std::map<RequestId, Open> open_;
  GenerationRequest last_;
  size_t largest_step_ = 0;
};

inline SchedulerSettings small_server(int blocks = 512, int max_model_len = 2048) {
  SchedulerSettings s;
  s.max_num_seqs = 16, s.max_num_batched_tokens = 512, s.max_model_len = max_model_len;
  s.kv.block_size = 16;
  s.kv.groups = {{.window = 0, .block_bytes = Bytes(1024), .max_blocks = blocks}};
  s.kv.capacity = Bytes(1024) * blocks;
  return s;
}

// Waits until the condition is true. Returns false after 20 seconds.
template <class Condition>
bool becomes_true(const Condition& condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

}  // namespace mw::serve
