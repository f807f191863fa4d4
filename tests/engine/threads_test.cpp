// SPDX-License-Identifier: Apache-2.0
// How work is split over threads and threads over NUMA nodes. Machines with several nodes are described by folders like
// those of Linux, or by values; the CPUs to which workers are bound are real.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <numeric>
#include <string>
#include <string_view>

#include "core/engine/runtime/work_split.h"
#include "core/engine/transformer/network.h"
#include "tests/base/scratch.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

std::vector<int> first_cpus(int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

CpuTopology four_nodes_of_sixteen() {
  CpuTopology machine;
  for (int node = 0; node < 4; ++node) {
    std::vector<int>& cpus = machine.nodes.emplace_back(16);
    std::iota(cpus.begin(), cpus.end(), 16 * node);
  }
  return machine;
}

TEST(WorkSplit, EveryElementIsInOnePartAndPartsAreNearlyEqual) {
  for (const std::int64_t total : {1, 15, 16, 640, 2048, 262144, 262145})
    for (const std::int64_t unit : {1, 16, 24})
      for (const std::int64_t parts : {1, 2, 3, 64}) {
        EXPECT_EQ(split_edge(total, unit, 0, parts), 0);
        EXPECT_EQ(split_edge(total, unit, parts, parts), total);
        const std::int64_t fair = (total + parts - 1) / parts;
        for (std::int64_t i = 0; i < parts; ++i) {
          const std::int64_t begin = split_edge(total, unit, i, parts), end = split_edge(total, unit, i + 1, parts);
          ASSERT_LE(begin, end);
          ASSERT_TRUE(begin % unit == 0 || begin == total);
          ASSERT_LT(end - begin, fair + unit) << total << " in " << parts;
        }
      }
}

// The matrices of a layer of Gemma 3 27B: rows that a product splits, bytes of a row in bf16.
TEST(WorkSplit, SixtyFourThreadsOnFourNodesReadTheSameBytes) {
  const std::vector<int> nodes = nodes_of_threads(four_nodes_of_sixteen(), 64);
  std::vector<std::int64_t> of_thread(64), of_node(4);
  for (const auto& [rows, row_bytes] : {std::pair<int, int>{4096, 2 * 5376},
                                        {2048, 2 * 5376},
                                        {5376, 2 * 4096},
                                        {21504, 2 * 5376},
                                        {5376, 2 * 21504},
                                        {262144, 2 * 5376}})
    for (int t = 0; t < 64; ++t) {
      const std::int64_t read = (split_edge(rows, 16, t + 1, 64) - split_edge(rows, 16, t, 64)) * row_bytes;
      of_thread[static_cast<size_t>(t)] += read;
      of_node[static_cast<size_t>(nodes[static_cast<size_t>(t)])] += read;
    }
  const auto spread = [](const std::vector<std::int64_t>& bytes) {
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    return static_cast<double>(*most) / static_cast<double>(*least);
  };
  EXPECT_LT(spread(of_thread), 1.05);
  EXPECT_LT(spread(of_node), 1.005);
}

TEST(CpuTopology, ThreadsOfANodeAreNeighboursInProportionToItsCpus) {
  const std::vector<int> all = nodes_of_threads(four_nodes_of_sixteen(), 64);
  for (size_t t = 0; t < all.size(); ++t) ASSERT_EQ(all[t], static_cast<int>(t / 16));
  EXPECT_EQ(nodes_of_threads(four_nodes_of_sixteen(), 4), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(nodes_of_threads({{{0, 1, 2, 3, 4, 5}, {6, 7}}}, 4), (std::vector<int>{0, 0, 0, 1}));
  EXPECT_EQ(nodes_of_threads({{{0}, {1}}}, 5), (std::vector<int>{0, 0, 1, 1, 1}));  // more threads than CPUs
  EXPECT_EQ(nodes_of_threads({{{}}}, 2), (std::vector<int>{0, 0}));
}

TEST(CpuTopology, NodesAreReadFromTheirFolders) {
  const mw::test::Scratch scratch;
  const auto node = [&](const std::string& name, std::string_view cpus) { scratch.put(name + "/cpulist", cpus); };
  node("node0", "0-3,8-11\n"), node("node10", "16"), node("node2", "4-7,12-15");
  node("node3", "");                              // memory only
  node("node4", "nonsense"), node("nodeX", "5");  // neither is a node
  node("node5", "99999999999999999999");
  std::filesystem::create_directories(scratch / "node6");
  const auto nodes = read_cpu_topology(scratch.path(), first_cpus(17)).nodes;
  EXPECT_EQ(nodes, (std::vector<std::vector<int>>{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}, {16}}));
  EXPECT_EQ(read_cpu_topology(scratch.path(), {2, 3, 4}).nodes, (std::vector<std::vector<int>>{{2, 3}, {4}}));
  EXPECT_EQ(read_cpu_topology(scratch / "missing", {2, 3}).nodes, (std::vector<std::vector<int>>{{2, 3}}));
  EXPECT_FALSE(this_machine().nodes.empty());
}

TEST(ThreadPool, WorkersStayOnTheirNode) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU has one node";
  const CpuTopology machine{{{cpus.front()}, {cpus.back()}}};
  ThreadPool pool(4, machine);
  EXPECT_EQ(pool.nodes(), 2);
  std::vector<std::vector<int>> bound(4);
  pool.parallel_for(4, 1, [&](std::int64_t t, std::int64_t) { bound[static_cast<size_t>(t)] = allowed_cpus(); });
  EXPECT_EQ(bound[0], cpus);  // the caller
  EXPECT_EQ(bound[1], machine.nodes[0]);
  EXPECT_EQ(bound[2], machine.nodes[1]);
  EXPECT_EQ(bound[3], machine.nodes[1]);
  EXPECT_EQ(ThreadPool(4, {{cpus}}).nodes(), 1);
}

struct Evaluated {
  std::vector<float> logits;
  Bytes held;
};

// Of a random model on a device of eight threads; its matrices are packed where the processor packs any.
Evaluated evaluate_on(const CpuTopology& machine, model::WeightType type) {
  model::Config c = tiny_config();
  c.vocab = 512, c.dim = 64;
  for (model::Layer& l : c.layers) l.head_dim = 32, l.mlp_dim = 256;
  Device device(Bytes(0), 8, machine);
  Network network(c, device, type);
  network.init_random(3);
  const OwnedBatch batch = packed_batch(2, 16, c.vocab);
  Evaluated out{std::vector<float>(32 * 512), device.arena.use().now.total()};
  network.logits(batch, out.logits);
  return out;
}

TEST(ThreadPool, SeveralNodesChangeNeitherResultsNorMemory) {
  const std::vector<int> cpus = allowed_cpus();
  for (const auto type : {model::WeightType::f32, model::WeightType::bf16, model::WeightType::int8}) {
    const Evaluated one = evaluate_on({{cpus}}, type);
    const Evaluated two = evaluate_on({{{cpus.front()}, {cpus.back()}}}, type);
    EXPECT_EQ(std::memcmp(one.logits.data(), two.logits.data(), one.logits.size() * sizeof(float)), 0);
    EXPECT_EQ(one.held, two.held);
  }
}

}  // namespace
}  // namespace mw::engine::test
