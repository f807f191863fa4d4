// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the peak rates of this machine, to which the other benchmarks relate theirs.
#pragma once
#include "core/engine/transformer/network.h"

namespace mw {

struct MachinePeak {                       // per second, all threads of the pool together
  double f32_flops = 0, bf16_flops = 0;    // widest FMA; vdpbf16ps. 0: not supported
  double cache_bytes = 0, dram_bytes = 0;  // reads of 16 MiB (L3 of a large processor) and of 1 GiB
  double threads_worth = 0;  // arithmetic of all threads / that of one. Well below their number on a busy machine,
                             // where these peaks are unreliable
};

// Takes the best of many repetitions, because other load only makes them slower. Takes some seconds.
MachinePeak measure_machine_peak(engine::Device& device);

}  // namespace mw
