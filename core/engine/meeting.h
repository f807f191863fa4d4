// SPDX-License-Identifier: Apache-2.0
// Where the threads of a group of devices wait for each other and show each other their memory. Inside the engine room.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace mw::engine {

class Meeting {
 public:
  explicit Meeting(std::size_t members) : shown_(members) {}

  struct Shown {  // one member's memory, and what it thinks the call is
    const float* at = nullptr;
    std::size_t floats = 0;
    int call = 0;
    bool same_call(const Shown& o) const { return floats == o.floats && call == o.call; }
  };
  // Before meet(): seen by the others after it.
  void show(std::size_t member, const Shown& shown) { shown_[member] = shown; }
  const Shown& shown(std::size_t member) const { return shown_[member]; }

  // Returns when all members are here; false if `broken` was set, now or while waiting.
  bool meet(const std::atomic<bool>& broken) {
    std::unique_lock lock(mutex_);
    const unsigned mine = round_;
    if (++arrived_ == shown_.size()) {
      arrived_ = 0, ++round_;
      lock.unlock();
      changed_.notify_all();
      return !broken;
    }
    changed_.wait(lock, [&] { return round_ != mine || broken; });
    return !broken;
  }
  void wake() {  // after `broken` was set
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }
  void reset() { arrived_ = 0; }  // nobody is in meet()

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  unsigned round_ = 0;
  std::vector<Shown> shown_;
};

}  // namespace mw::engine
