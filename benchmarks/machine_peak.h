// SPDX-License-Identifier: GPL-3.0-or-later
// What this processor can do at best, measured: the yardstick of the other benchmarks.
#pragma once
#include "core/engine/transformer/network.h"

namespace mw {

struct MachinePeak {                       // a second, all threads of the pool together
  double f32_flops = 0, bf16_flops = 0;    // widest FMA; vdpbf16ps. 0: usable_cpu() has none
  double cache_bytes = 0, dram_bytes = 0;  // reads of 16 MiB (L3 of a large processor) and of 1 GiB
  double threads_worth = 0;  // arithmetic of all threads over that of one: well below their number on a busy machine,
                             // where fractions of these peaks mean nothing
};

// The best of many tries, some seconds in all: other load and a worker's late start only ever make a try slower.
MachinePeak measure_machine_peak(engine::Device& device);

}  // namespace mw
