// SPDX-License-Identifier: Apache-2.0
// Measures the peak rates of this machine, to which benchmarks relate their own.
#pragma once
#include "core/engine/runtime/device.h"

namespace mw::engine {

struct MachinePeak {                       // per second, all threads of the pool together
  double f32_flops = 0, bf16_flops = 0;    // widest FMA; vdpbf16ps, or AMX through oneDNN. 0: not supported
  double cache_bytes = 0, dram_bytes = 0;  // reads of 16 MiB (L3 of a large processor) and of 1 GiB
  double threads_worth = 0;  // arithmetic of all threads / that of one. Well below their number on a busy machine,
                             // where these peaks are unreliable
};

// Takes the best of many repetitions, because other load only makes them slower. `seconds` is the time of
// each of the five measurements. Allocates 1 GiB in the arena meanwhile.
MachinePeak measure_machine_peak(Device& device, double seconds = 0.8);
double measure_dram_read(Device& device, double seconds);  // MachinePeak::dram_bytes alone

}  // namespace mw::engine
