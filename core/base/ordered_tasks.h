// SPDX-License-Identifier: Apache-2.0
// Runs tasks in order on a thread of its own, so that writing overlaps with what produces the data. Use each object on
// one thread.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace mw {

class OrderedTasks {
 public:
  // add() waits while tasks of more than `limit` bytes are waiting or running.
  explicit OrderedTasks(size_t limit) : limit_(limit), thread_([this](const std::stop_token& stop) { work(stop); }) {}
  ~OrderedTasks();  // drops the tasks that have not begun
  OrderedTasks(const OrderedTasks&) = delete;
  OrderedTasks& operator=(const OrderedTasks&) = delete;
  // `bytes` that the task holds. Rethrows the exception of an earlier task, after which none is run.
  void add(std::function<void()> task, size_t bytes);
  void finish();  // waits for all tasks; rethrows like add()

 private:
  struct Task {
    std::function<void()> run;
    size_t bytes;
  };
  void work(const std::stop_token& stop);
  void rethrow();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> tasks_;  // the first one is running
  size_t bytes_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace mw
