// SPDX-License-Identifier: Apache-2.0
// Runs the most recently submitted task on a thread of its own; submitting a new task asks the current one to stop.
// submit and cancel are thread-safe; `work` runs on the worker thread and must not throw.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace mw {

template <class Task>
class LatestTaskWorker {
 public:
  using Pause = std::function<bool(std::chrono::milliseconds)>;  // waits; false if a newer task or a stop ended it
  using Work = std::function<void(Task task, std::stop_token stop, const Pause& pause)>;

  explicit LatestTaskWorker(Work work) : work_(std::move(work)), thread_([this](std::stop_token end) { run(end); }) {}
  ~LatestTaskWorker() {
    thread_.request_stop();
    cancel();
  }

  void submit(Task task) {
    {
      const std::lock_guard lock(mutex_);
      next_ = std::move(task);
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
      std::optional<Task> task;
      std::stop_token stop;
      {
        std::unique_lock lock(mutex_);
        if (!wake_.wait(lock, end, [this] { return next_.has_value(); })) return;
        task.swap(next_);
        current_ = std::stop_source();
        stop = current_.get_token();
      }
      work_(std::move(*task), stop, [&](std::chrono::milliseconds duration) {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, end, duration, [&] { return next_.has_value() || stop.stop_requested(); });
        return !stop.stop_requested() && !end.stop_requested();
      });
    }
  }

  Work work_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Task> next_;
  std::stop_source current_;
  std::jthread thread_;  // last member: it uses the others
};

}  // namespace mw
