// SPDX-License-Identifier: GPL-3.0-or-later
// An executor without a model: every request gets the tokens of a script, over and over. What a test wants to see of
// the server around it (order, blocks, cancelling) is real.
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
  int stop_after = -1;                     // tokens, then the model ends (where a request has stop ids); -1: never
  std::chrono::microseconds step_time{0};  // that a step takes
  std::atomic<bool> failing{false};
  int bad_token = -1;  // begin() refuses prompts with it

  void begin(RequestId id, const Prompt& prompt) override {
    for (const int token : prompt.ids)
      if (token == bad_token) throw Error({.id = "REQUEST", .message = "a bad token", .place = "prompt"});
    const std::lock_guard lock(mutex_);
    open_[id] = {prompt, 0};
    last_ = prompt;
    ++begun_;
  }
  void end(RequestId id) override {
    const std::lock_guard lock(mutex_);
    open_.erase(id);
  }
  StepResult run(const Step& step, const Scheduler&) override {
    if (step_time.count() > 0) std::this_thread::sleep_for(step_time);
    if (failing) throw std::runtime_error("the machine is on fire");
    const std::lock_guard lock(mutex_);
    most_at_once_ = std::max(most_at_once_, step.items.size());
    StepResult result;
    for (const StepItem& item : step.items) {
      if (!item.samples) continue;
      Open& open = open_.at(item.id);
      const bool ended = stop_after >= 0 && open.tokens >= stop_after && !open.prompt.stop_ids.empty();
      const int token = ended ? open.prompt.stop_ids.front() : script[static_cast<size_t>(open.tokens) % script.size()];
      ++open.tokens;
      result.sampled.push_back({item.id, token, ended});
    }
    return result;
  }
  size_t open() const {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }
  size_t most_at_once() const {
    const std::lock_guard lock(mutex_);
    return most_at_once_;
  }
  Prompt last_prompt() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  struct Open {
    Prompt prompt;
    int tokens = 0;
  };
  mutable std::mutex mutex_;
  std::map<RequestId, Open> open_;
  Prompt last_;
  size_t begun_ = 0, most_at_once_ = 0;
};

inline SchedulerSettings small_server(int blocks = 512, int max_model_len = 2048) {
  SchedulerSettings s;
  s.max_num_seqs = 16, s.max_num_batched_tokens = 512, s.max_model_len = max_model_len;
  s.kv.block_size = 16;
  s.kv.groups = {{.window = 0, .block_bytes = Bytes(1024), .max_blocks = blocks}};
  s.kv.capacity = Bytes(1024) * blocks;
  return s;
}

// Waits until it is true, at most two seconds.
template <class Condition>
bool soon(const Condition& condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

}  // namespace mw::serve
