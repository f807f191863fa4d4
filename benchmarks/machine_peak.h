// SPDX-License-Identifier: GPL-3.0-or-later
// What this processor can do at best, measured: the yardstick of the other benchmarks.
#pragma once
#include "core/engine/thread_pool.h"

namespace mw {

struct MachinePeak {                       // a second, all threads of the pool together
  double f32_flops = 0, bf16_flops = 0;    // widest FMA; vdpbf16ps. 0: usable_cpu() has none
  double cache_bytes = 0, dram_bytes = 0;  // reads of 16 MiB (L3 of a large processor) and of 1 GiB
};

// The best of a few short tries; about a second.
MachinePeak measure_machine_peak(engine::ThreadPool& pool);

}  // namespace mw
