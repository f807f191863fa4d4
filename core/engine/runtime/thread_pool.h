// SPDX-License-Identifier: Apache-2.0
// A fixed pool with static partitions (work_split.h), so results do not depend on timing. The calling thread takes part
// as thread 0. On a machine with several NUMA nodes each worker stays on the CPUs of its node (nodes_of_threads()); the
// caller is not bound, because threads that it starts would inherit that.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "core/engine/runtime/cpu_topology.h"

namespace mw::engine {

class ThreadPool {
 public:
  // threads >= 1; workers run at a lower priority (nice +5) so a window stays responsive.
  explicit ThreadPool(int threads, const CpuTopology& machine = this_machine());
  ~ThreadPool();
  int threads() const;
  int nodes() const;  // NUMA nodes of its threads
  // Splits [0,count) into at most threads() contiguous parts (multiples of `grain`), runs fn(begin,end) on each, waits.
  // Exceptions are rethrown here. Nested calls run inline.
  void parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& fn);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Gives the calling thread a lower priority than the main thread (nice +5), so that a window stays responsive.
void lower_priority();

}  // namespace mw::engine
