// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/hardware/catalogue.h"

namespace mw::hardware {
namespace {

Figure estimate(double value, const char* why) {
  return {value, value / 4, value * 4, Provenance::derived, why};
}

}  // namespace

Chip this_machine() {
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  Chip c;
  c.id = "cpu";
  c.name = "this machine";
  c.vendor = Vendor::cpu;
  c.bf16_flops = estimate(cores * 64e9, "32 FLOP per cycle and core at 2 GHz, not measured");
  c.memory_bandwidth = estimate(std::min(cores * 8e9, 200e9), "8 GB/s per core, not measured");
  c.matmul_efficiency = {0.8, 0.5, 1, Provenance::derived, "not measured"};
  c.memory_efficiency = {0.8, 0.5, 1, Provenance::derived, "not measured"};
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  c.memory = {memory, memory, memory, Provenance::measured, "physical memory reported by the operating system"};
  c.marketed_memory = static_cast<std::int64_t>(memory);
  c.link_bandwidth = c.memory_bandwidth;  // virtual devices copy through memory
  c.link_latency = estimate(5e-6, "waking a thread, not measured");
  c.links = 1;
  c.matrix_unit = 1;
  c.chips_per_host = c.chips_one_host = c.max_chips = 1;
  return c;
}

Target cpu_target(const Chip& machine, int devices) {
  Target t;
  t.id = devices == 1 ? "cpu" : "cpu-" + std::to_string(devices);
  t.chip = machine;
  t.chip.devices_per_chip = devices;
  for (double* share : {&t.chip.memory.value, &t.chip.memory.low, &t.chip.memory.high}) *share /= devices;
  t.shape = {1};
  t.wrap = {true};
  t.note = devices == 1 ? "this machine" : "this machine shared by " + std::to_string(devices) + " virtual devices";
  return t;
}

}  // namespace mw::hardware
