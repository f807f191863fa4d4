// SPDX-License-Identifier: Apache-2.0
// The CPUs on which this process may run, by NUMA node. Sources: /sys/devices/system/node (Linux,
// Documentation/ABI/stable/sysfs-devices-node) and sched_getaffinity(2).
#pragma once
#include <filesystem>
#include <vector>

namespace mw::engine {

struct CpuTopology {
  std::vector<std::vector<int>> nodes;  // CPUs of each node, ascending; nodes without an allowed CPU are left out
};

std::vector<int> allowed_cpus();  // of the calling thread, ascending
// `folder` has the nodes' folders. If it describes none of the allowed CPUs, these are one node.
CpuTopology read_cpu_topology(const std::filesystem::path& folder, const std::vector<int>& allowed);
// Returns the topology of this machine, which is read at the first call.
const CpuTopology& this_machine();

// The node of each thread. Threads of a node are neighbours, and nodes have threads in proportion to their CPUs.
std::vector<int> nodes_of_threads(const CpuTopology& machine, int threads);

}  // namespace mw::engine
