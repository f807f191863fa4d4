// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runtime/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

namespace mw::engine {
namespace {

namespace fs = std::filesystem;

// The numbers of `list` ("0-3,8") that are in `allowed`; text that is no such list ends it.
std::vector<int> cpus_of(std::string_view list, const std::vector<int>& allowed) {
  std::vector<int> cpus;
  while (!list.empty()) {
    int first = 0;
    const auto number = [&](int& value) {
      const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), value);
      list.remove_prefix(static_cast<size_t>(end - list.data()));
      return error == std::errc();
    };
    if (!number(first)) break;
    int last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      if (!number(last)) break;
    }
    std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(cpus),
                 [&](int cpu) { return first <= cpu && cpu <= last; });
    if (!list.starts_with(',')) break;
    list.remove_prefix(1);
  }
  return cpus;
}

// -1 unless the name is "node" and a number.
int node_number(const std::string& name) {
  constexpr std::string_view kPrefix = "node";
  int number = -1;
  const char* const end = name.data() + name.size();
  if (!name.starts_with(kPrefix)) return -1;
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : -1;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

CpuTopology read_cpu_topology(const fs::path& folder, const std::vector<int>& allowed) {
  std::map<int, std::vector<int>> by_number;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const int node = node_number(it->path().filename().string());
    std::string list;
    if (node < 0 || !std::getline(std::ifstream(it->path() / "cpulist"), list)) continue;
    std::vector<int> cpus = cpus_of(list, allowed);
    if (!cpus.empty()) by_number.emplace(node, std::move(cpus));
  }
  CpuTopology machine;
  for (auto& [node, cpus] : by_number) machine.nodes.push_back(std::move(cpus));
  if (machine.nodes.empty()) machine.nodes.push_back(allowed);
  return machine;
}

const CpuTopology& this_machine() {
  static const CpuTopology machine = read_cpu_topology("/sys/devices/system/node", allowed_cpus());
  return machine;
}

std::vector<int> nodes_of_threads(const CpuTopology& machine, int threads) {
  std::vector<int> node_of_cpu;
  for (size_t node = 0; node < machine.nodes.size(); ++node)
    node_of_cpu.insert(node_of_cpu.end(), machine.nodes[node].size(), static_cast<int>(node));
  std::vector<int> nodes(static_cast<size_t>(std::max(0, threads)), 0);
  if (node_of_cpu.empty()) return nodes;
  for (size_t t = 0; t < nodes.size(); ++t)  // the CPU in the middle of the thread's share
    nodes[t] = node_of_cpu[(2 * t + 1) * node_of_cpu.size() / (2 * nodes.size())];
  return nodes;
}

}  // namespace mw::engine
