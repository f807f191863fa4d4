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

  // Opens a call: true when all members are here, for all of them alike; false where `broken` was set before that.
  // Who leaves is not counted any more, so that nobody reads the memory of one who is gone.
  bool meet(const std::atomic<bool>& broken) {
    std::unique_lock lock(mutex_);
    const unsigned mine = round_;
    if (arrive(lock)) return true;
    changed_.wait(lock, [&] { return round_ != mine || broken; });
    if (round_ != mine) return true;
    --arrived_;
    return false;
  }
  // Within a call and at its end: all who opened it come, whatever happens elsewhere. Their memory stays until then.
  void meet_again() {
    std::unique_lock lock(mutex_);
    const unsigned mine = round_;
    if (!arrive(lock)) changed_.wait(lock, [&] { return round_ != mine; });
  }
  void wake() {  // after `broken` was set
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

 private:
  bool arrive(std::unique_lock<std::mutex>& lock) {  // true: the last
    if (++arrived_ < shown_.size()) return false;
    arrived_ = 0, ++round_;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  unsigned round_ = 0;
  std::vector<Shown> shown_;
};

}  // namespace mw::engine
