// SPDX-License-Identifier: Apache-2.0
// Runs tasks that mostly block, each on its own thread. Threads are created on demand up to a limit and reused.
// Thread-safe.
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
  explicit WorkerPool(int max_threads) : max_threads_(max_threads) {}
  ~WorkerPool() { join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts the task at once. Returns false if all threads are busy, the system cannot create one or join() was called.
  bool run(Task task);
  int busy() const;  // running tasks
  void join();       // waits for all tasks and joins all threads; later tasks are rejected

 private:
  void work();

  const int max_threads_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> started_;  // not yet taken by their idle threads
  std::vector<std::thread> threads_;
  int busy_ = 0;
  bool joining_ = false;
};

}  // namespace mw::serve
