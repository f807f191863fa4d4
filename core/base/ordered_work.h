// SPDX-License-Identifier: Apache-2.0
// Runs functions on threads and returns their results in the order in which they were given; with one thread, the
// functions run in this order, too. One thread gives and takes.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace mw {

template <class Result>
class OrderedWork {
 public:
  explicit OrderedWork(int threads) {  // 0: on the thread that gives
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
  // Waits for the functions that run, and drops those that have not begun.
  ~OrderedWork() {
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  template <class Function>
  void give(Function function) {
    std::packaged_task<Result()> task(std::move(function));
    results_.push_back(task.get_future());
    if (threads_.empty()) return task();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  size_t pending() const { return results_.size(); }  // given and not taken
  // Waits for the oldest pending result; rethrows what its function threw.
  Result take() {
    std::future<Result> result = std::move(results_.front());
    results_.pop_front();
    return result.get();
  }

 private:
  void run(const std::stop_token& stop) {
    for (;;) {
      std::packaged_task<Result()> task;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return !tasks_.empty(); }) || stop.stop_requested()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::deque<std::future<Result>> results_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<Result()>> tasks_;
  std::vector<std::jthread> threads_;  // last: they use the other members
};

}  // namespace mw
