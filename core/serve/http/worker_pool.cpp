// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/worker_pool.h"

#include <system_error>
#include <utility>

namespace mw::serve {

bool WorkerPool::run(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (joining_ || busy_ >= max_threads_) return false;
    if (static_cast<size_t>(busy_) == threads_.size()) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        return false;
      }
    }
    ++busy_;
    started_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return joining_ || !started_.empty(); });
    if (started_.empty()) return;
    {
      const Task task = std::move(started_.front());
      started_.pop_front();
      lock.unlock();
      task();
    }
    lock.lock();
    --busy_;
  }
}

int WorkerPool::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void WorkerPool::join() {
  std::vector<std::thread> all;
  {
    const std::lock_guard lock(mutex_);
    joining_ = true;
    all.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : all) thread.join();
}

}  // namespace mw::serve
