// SPDX-License-Identifier: Apache-2.0
// A question that is asked again before it was answered: one worker thread, the newest question cancels the older one,
// stale answers drop themselves. ask() and drain() from one thread; `work` runs on the worker.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mailbox.h"

namespace mw {

template <class Question, class Answer>
class Latest {
 public:
  using Say = std::function<void(Answer)>;  // as often as there is something to say
  // Must end soon after stop is requested and must not throw.
  using Work = std::function<void(const Question&, const std::stop_token& stop, const Say& say)>;

  explicit Latest(Work work) : work_(std::move(work)), thread_([this](std::stop_token stop) { run(stop); }) {}
  ~Latest() {
    thread_.request_stop();
    cancel();
    wake_.notify_all();
  }

  void ask(Question question) {
    {
      const std::lock_guard lock(mutex_);
      next_ = std::pair(++asked_, std::move(question));
      current_.request_stop();
    }
    wake_.notify_one();
  }
  // The question asked last is not answered any more.
  void cancel() {
    const std::lock_guard lock(mutex_);
    ++asked_;
    next_.reset();
    current_.request_stop();
  }
  // Answers to the newest question, oldest first.
  std::vector<Answer> drain() {
    std::vector<Answer> out;
    for (auto& [number, answer] : answers_.drain().items)
      if (number == asked_) out.push_back(std::move(answer));
    return out;
  }

 private:
  void run(const std::stop_token& stop) {
    while (true) {
      std::optional<std::pair<std::uint64_t, Question>> question;
      std::stop_token cancelled;
      {
        std::unique_lock lock(mutex_);
        if (!wake_.wait(lock, stop, [this] { return next_.has_value(); })) return;
        question.swap(next_);
        current_ = std::stop_source();
        cancelled = current_.get_token();
      }
      work_(question->second, cancelled, [&](Answer answer) {
        answers_.push({question->first, std::move(answer)}, Delivery::state);
      });
    }
  }

  Work work_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<std::pair<std::uint64_t, Question>> next_;
  std::stop_source current_;
  std::uint64_t asked_ = 0;
  Mailbox<std::pair<std::uint64_t, Answer>> answers_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw
