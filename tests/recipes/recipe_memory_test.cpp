// SPDX-License-Identifier: GPL-3.0-or-later
// Memory events of the recipes from recorded values of JAX on a TPU v5e and of torch on CUDA; no accelerator is used.
#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "core/base/event.h"
#include "core/base/text.h"

namespace mw::recipes {
namespace {

std::vector<Event> events_of(const std::string& script) {
  const std::string folder = (std::filesystem::path(MW_RESOURCES) / "recipes" / "common").string();
  const std::string command = "python3 -B -c " +
                              shell_quoted("import sys; sys.path.insert(0, sys.argv[1])\n" + script) + " " +
                              shell_quoted(folder);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  std::array<char, 4096> bytes{};
  while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) out.append(bytes.data(), n);
  EXPECT_EQ(::pclose(pipe), 0) << out;
  std::vector<Event> events;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) events.push_back(event_from_json(parse_json(line, "line")));
  return events;
}

// The statistics of a v5e chip as JAX printed them in a notebook: 15.75 GiB of 16 are a program's.
constexpr const char* kTpu = R"(
import memory
class Shard:
    def __init__(self, device, nbytes):
        self.device, self.data = device, type("Data", (), {"nbytes": nbytes})
class Array:
    def __init__(self, *shards):
        self.addressable_shards = shards
class Device:
    def __init__(self, id, stats):
        self.id, self.memory_stats = id, lambda: stats
stats = {'num_allocs': 486, 'bytes_in_use': 1961653248, 'peak_bytes_in_use': 1961653248, 'largest_alloc_size': 100663296,
         'bytes_limit': 16909332480, 'bytes_reserved': 0, 'peak_bytes_reserved': 0, 'bytes_reservable_limit': 16909332480,
         'largest_free_block_bytes': 14947679232}
devices = [Device(0, stats), Device(1, stats)]
)";

TEST(RecipeMemory, ReadsTheStatisticsOfATpu) {
  const auto events = events_of(std::string(kTpu) + R"(
hbm = memory.JaxMemory(devices)
assert hbm.limits() == 16909332480
weights = Array(Shard(devices[0], 1200000000), Shard(devices[1], 1300000000))
hbm.send(0, "load", {"weights": [weights], "adapters": [], "optimizer": [Array(Shard(devices[0], 1000))]})
hbm.send(3, "step", {"weights": [weights]})
hbm.send(4, "step", {"weights": [weights]})
)");
  ASSERT_EQ(events.size(), 4u) << "an unchanged peak is not sent at every step";
  const auto& first = std::get<event::Memory>(events[0].body);
  EXPECT_EQ(first.device, 0);
  EXPECT_EQ(first.phase, "load");
  EXPECT_EQ(first.bytes[MemoryCategory::weights].value, 1200000000);
  EXPECT_EQ(first.bytes[MemoryCategory::optimizer].value, 1000);
  EXPECT_EQ(first.bytes.total().value, 1961653248);
  EXPECT_EQ(first.peak.value, 1961653248);
  const auto& second = std::get<event::Memory>(events[1].body);
  EXPECT_EQ(second.device, 1);
  EXPECT_EQ(second.bytes[MemoryCategory::weights].value, 1300000000);
  EXPECT_EQ(std::get<event::Memory>(events[2].body).step, 3);
}

TEST(RecipeMemory, ReadsTheStatisticsOfTorch) {
  const auto events = events_of(R"(
import memory
stats = {"allocated_bytes.all.current": 1536000000, "allocated_bytes.all.peak": 1792000000,
         "reserved_bytes.all.current": 2048000000, "allocation.all.current": 5000}
memory.send(1, 7, "step", memory.from_torch(stats), {"weights": 1500000000, "adapters": 0})
)");
  ASSERT_EQ(events.size(), 1u);
  const auto& memory = std::get<event::Memory>(events[0].body);
  EXPECT_EQ(memory.bytes.total().value, 1792000000);
  EXPECT_EQ(memory.bytes[MemoryCategory::workspace].value, 292000000);
}

TEST(RecipeMemory, ACpuSendsNothing) {
  EXPECT_TRUE(events_of(R"(
import memory
class Cpu:
    id = 0
    memory_stats = staticmethod(lambda: None)
hbm = memory.JaxMemory([Cpu])
assert hbm.limits() == 0
hbm.send(1, "step", {"weights": []})
assert memory.from_torch({}) is None and memory.from_jax({}) is None
)")
                  .empty());
}

}  // namespace
}  // namespace mw::recipes
