// SPDX-License-Identifier: Apache-2.0
// Runs tasks that mostly wait, each on a thread of its own, on a bounded number of threads: created on demand, reused,
// joined. Thread-safe.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mw::serve {

class WorkerPool {
 public:
  using Task = std::function<void()>;  // must not throw
  explicit WorkerPool(int most_threads) : most_(most_threads) {}
  ~WorkerPool() { join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts the task at once. False: every thread is busy, the system has no further one, or join() was called.
  bool run(Task task);
  int busy() const;     // tasks that were started and have not ended
  int threads() const;  // that exist
  void join();          // waits for all tasks and joins all threads; later tasks are refused

 private:
  void work();

  const int most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> started_;  // an idle thread will take each
  std::vector<std::thread> threads_;
  int busy_ = 0;
  bool joining_ = false;
};

}  // namespace mw::serve
