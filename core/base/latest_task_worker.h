// SPDX-License-Identifier: Apache-2.0
// A thread that works on the newest question; a newer one asks the work on an older one to stop. Asked from any thread;
// `work` runs on the thread and must not throw.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace mw {

template <class Question>
class LatestTaskWorker {
 public:
  using Quiet = std::function<bool(std::chrono::milliseconds)>;  // waits so long; false: something newer came
  using Work = std::function<void(Question question, std::stop_token stop, const Quiet& quiet)>;

  explicit LatestTaskWorker(Work work) : work_(std::move(work)), thread_([this](std::stop_token end) { run(end); }) {}
  ~LatestTaskWorker() {
    thread_.request_stop();
    cancel();
  }

  void ask(Question question) {
    {
      const std::lock_guard lock(mutex_);
      next_ = std::move(question);
      current_.request_stop();
    }
    wake_.notify_all();
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    next_.reset();
    current_.request_stop();
  }

 private:
  void run(const std::stop_token& end) {
    while (!end.stop_requested()) {
      std::optional<Question> question;
      std::stop_token stop;
      {
        std::unique_lock lock(mutex_);
        if (!wake_.wait(lock, end, [this] { return next_.has_value(); })) return;
        question.swap(next_);
        current_ = std::stop_source();
        stop = current_.get_token();
      }
      work_(std::move(*question), stop, [&](std::chrono::milliseconds pause) {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, end, pause, [&] { return next_.has_value() || stop.stop_requested(); });
        return !stop.stop_requested() && !end.stop_requested();
      });
    }
  }

  Work work_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Question> next_;
  std::stop_source current_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw
