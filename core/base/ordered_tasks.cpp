// SPDX-License-Identifier: Apache-2.0
#include "core/base/ordered_tasks.h"

#include <utility>

namespace mw {

OrderedTasks::~OrderedTasks() {
  {
    const std::lock_guard lock(mutex_);
    thread_.request_stop();
  }
  changed_.notify_all();
  thread_.join();
}

void OrderedTasks::rethrow() {
  if (error_) std::rethrow_exception(error_);
}

void OrderedTasks::add(std::function<void()> task, size_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || bytes_ <= limit_; });
  rethrow();
  tasks_.push_back({std::move(task), bytes});
  bytes_ += bytes;
  changed_.notify_all();
}

void OrderedTasks::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || tasks_.empty(); });
  rethrow();
}

void OrderedTasks::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !tasks_.empty() && !error_; }) && !stop.stop_requested()) {
    std::function<void()> run = std::move(tasks_.front().run);
    const size_t bytes = tasks_.front().bytes;
    lock.unlock();
    std::exception_ptr error;
    try {
      run();
    } catch (...) {
      error = std::current_exception();
    }
    run = {};  // releases its bytes first
    lock.lock();
    tasks_.pop_front();
    bytes_ -= bytes;
    error_ = error;
    changed_.notify_all();
  }
}

}  // namespace mw
