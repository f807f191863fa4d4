// SPDX-License-Identifier: Apache-2.0
// A fixed pool with static partitions, so results do not depend on timing. The calling thread takes part.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace mw::engine {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // >= 1; workers run at a lower priority (nice +5) so a window stays responsive
  ~ThreadPool();
  int threads() const;
  // Splits [0,count) into at most threads() contiguous parts (multiples of `grain`), runs fn(begin,end) on each, waits.
  // Exceptions are rethrown here. Nested calls run inline.
  void parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& fn);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Lowers the priority of the calling thread (nice +5), so that a window stays responsive.
void lower_priority();

}  // namespace mw::engine
