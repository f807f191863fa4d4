// SPDX-License-Identifier: Apache-2.0
// A virtual device: the memory and the cores that one network computes with.
#pragma once
#include <optional>

#include "core/engine/runtime/arena.h"
#include "core/engine/runtime/arithmetic.h"
#include "core/engine/runtime/thread_pool.h"

namespace mw::engine {

struct Device {
  Arena arena;
  ThreadPool pool;
  std::optional<Arithmetic> arithmetic;  // of its products; none: the processor's best (kernels/kernel_choice.h)
  Device(Bytes capacity, int threads, const CpuTopology& machine = this_machine(),
         std::optional<Arithmetic> its_arithmetic = {})
      : arena(capacity), pool(threads, machine), arithmetic(its_arithmetic) {}
};

}  // namespace mw::engine
