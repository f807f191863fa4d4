// SPDX-License-Identifier: Apache-2.0
// A virtual device: the memory and the cores that one network computes with.
#pragma once
#include "core/engine/runtime/arena.h"
#include "core/engine/runtime/thread_pool.h"

namespace mw::engine {

struct Device {
  Arena arena;
  ThreadPool pool;
  Device(Bytes capacity, int threads, const CpuTopology& machine = this_machine())
      : arena(capacity), pool(threads, machine) {}
};

}  // namespace mw::engine
