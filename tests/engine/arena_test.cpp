// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/runtime/arena.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>

#include "core/base/error.h"
#include "core/engine/transformer/optimizer.h"
#include "tests/base/instrumented.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

TEST(Arena, CountsByCategoryAndKeepsThePeakSplit) {
  Arena arena;
  {
    DeviceBuffer<float> weights(arena, float_allocation(MemoryCategory::weights, "weights", 4096));
    { DeviceBuffer<float> big(arena, float_allocation(MemoryCategory::logits, "logits", 1 << 20)); }
    DeviceBuffer<float> small(arena, float_allocation(MemoryCategory::activations, "x", 2048));
    EXPECT_EQ(arena.use().now[MemoryCategory::weights], Bytes(16384));
    EXPECT_EQ(arena.use().now.total(), Bytes(16384 + 8192));
    EXPECT_EQ(arena.use().at_peak.total(), Bytes(16384 + (4 << 20)));
    EXPECT_EQ(arena.use().at_peak[MemoryCategory::activations], Bytes(0));
    EXPECT_EQ(arena.use().category_peaks[MemoryCategory::activations], Bytes(8192));
    arena.reset_peak();
    EXPECT_EQ(arena.use().at_peak.total(), Bytes(16384 + 8192));
    for (const float f : small.span()) ASSERT_EQ(f, 0);
  }
  EXPECT_EQ(arena.use().now.total(), Bytes(0));
}

TEST(Arena, RefusesMoreThanItsCapacityAndNamesWhatIsHeld) {
  Arena arena(Bytes(1 << 20));
  DeviceBuffer<float> held(arena, float_allocation(MemoryCategory::weights, "weights", 1 << 17));
  try {
    DeviceBuffer<float> more(arena, float_allocation(MemoryCategory::activations, "layer inputs", 1 << 18));
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().id, "MEMORY");
    EXPECT_NE(e.problem().message.find("layer inputs"), std::string::npos);
    EXPECT_NE(e.problem().found.find("weights 512 KiB"), std::string::npos) << e.problem().found;
  }
  EXPECT_EQ(arena.use().now.total(), Bytes(1 << 19));
}

TEST(Arena, OutOfMemorySaysWhatTheDeviceHeldAtThatMoment) {
  Arena arena(Bytes(1 << 20));
  DeviceBuffer<float> weights(arena, float_allocation(MemoryCategory::weights, "weights", 1 << 16));
  DeviceBuffer<float> one(arena, float_allocation(MemoryCategory::activations, "step", 1 << 15)),
      two(arena, float_allocation(MemoryCategory::activations, "step", 1 << 16));
  { DeviceBuffer<float> gone(arena, float_allocation(MemoryCategory::logits, "logits", 1 << 16)); }
  try {
    DeviceBuffer<float> more(arena, float_allocation(MemoryCategory::logits, "logits", 1 << 17));
    FAIL() << "accepted";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.moment.wanted, Bytes(1 << 19));
    EXPECT_EQ(e.moment.held, arena.use().now);
    ASSERT_EQ(e.moment.largest.size(), 2u);  // what was released is not held
    EXPECT_EQ(e.moment.largest[0].label, "step");
    EXPECT_EQ(e.moment.largest[0].bytes, Bytes((1 << 17) + (1 << 18)));
    EXPECT_EQ(e.moment.largest[0].buffers, 2);
    OutOfMemory::State known = e.moment;
    known.device = "device 3 (fsdp 0, tp 3)";
    known.phase = "the update of step 3";
    const std::string message = OutOfMemory(known).problem().message;
    EXPECT_NE(message.find("on device 3 (fsdp 0, tp 3)"), std::string::npos) << message;
    EXPECT_NE(message.find("in the update of step 3"), std::string::npos) << message;
    EXPECT_NE(e.problem().found.find("largest: step 384 KiB in 2, weights 256 KiB"), std::string::npos)
        << e.problem().found;
  }
}

TEST(Arena, ANetworkThatDoesNotFitIsRefusedAndLeavesNothing) {
  Device device(Bytes(256 << 10), 1);
  EXPECT_THROW(
      {
        Network network(tiny_config(), device, model::WeightType::f32);
        network.set_trainable(model::TrainMethod::full);
        network.forward_backward(packed_batch(64, 64, 61), {});
      },
      Error);
  EXPECT_EQ(device.arena.use().now.total(), Bytes(0));
}

long status_kib(const char* key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) return std::stol(line.substr(line.find(':') + 1));
  return 0;
}

// In a child of its own: this process's allocations so far would blur it. Returns ledger peak / RSS growth.
double ledger_over_rss(model::WeightType type, model::TrainMethod method, model::Remat remat) {
  int fds[2];
  if (pipe(fds) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    const long before = status_kib("RssAnon");
    Device device(Bytes(0), 2);
    model::Config c = tiny_config();
    c.vocab = 8192, c.dim = 512;
    for (model::Layer& l : c.layers) l.heads = 4, l.kv_heads = 1, l.head_dim = 128, l.mlp_dim = 2048;
    c.sliding_window = 64;
    Network network(c, device, type);
    network.init_random(1);
    if (method == model::TrainMethod::lora) network.add_lora(all_projections(8), 1);
    network.set_trainable(method);
    AdamW adam(device, network.parameters(), {});
    const OwnedBatch batch = packed_batch(4, 128, 8192);
    for (int t = 1; t <= 2; ++t) {
      network.forward_backward(batch, {.remat = remat});
      adam.step(t, 1e-4f, 1, adam.gradient_norm());
      network.parameters_changed();
    }
    const double growth =
        1024.0 * static_cast<double>(status_kib("VmHWM") - status_kib("RssFile") - status_kib("RssShmem") - before);
    const double ratio = static_cast<double>(device.arena.use().at_peak.total().value) / growth;
    const bool sent = write(fds[1], &ratio, sizeof ratio) == sizeof ratio;
    _exit(sent ? 0 : 1);
  }
  double ratio = 0;
  const bool got = read(fds[0], &ratio, sizeof ratio) == sizeof ratio;
  int status = 0;
  waitpid(child, &status, 0);
  close(fds[0]);
  close(fds[1]);
  return got ? ratio : 0;
}

TEST(Arena, PeakAgreesWithTheProcessWithinFivePercent) {
  if (mw::test::kInstrumented) GTEST_SKIP() << "sanitizers add memory of their own";
  EXPECT_NEAR(ledger_over_rss(model::WeightType::f32, model::TrainMethod::lora, model::Remat::none), 1, 0.05);
  EXPECT_NEAR(ledger_over_rss(model::WeightType::bf16, model::TrainMethod::full, model::Remat::layer), 1, 0.05);
}

TEST(ThreadPool, CoversEveryIndexOnceAndRethrows) {
  ThreadPool pool(3);
  for (const std::int64_t count : {0, 1, 5, 64, 1000}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    pool.parallel_for(count, 16, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(begin % 16, 0);
      for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    for (const auto& h : hits) ASSERT_EQ(h, 1);
  }
  const auto fails = [](std::int64_t begin, std::int64_t) {
    if (begin > 0) throw std::runtime_error("part");
  };
  EXPECT_THROW(pool.parallel_for(100, 1, fails), std::runtime_error);
  std::atomic<int> inner{0};
  pool.parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      pool.parallel_for(10, 1, [&](std::int64_t b, std::int64_t e) { inner += static_cast<int>(e - b); });
  });
  EXPECT_EQ(inner, 60);
}

}  // namespace
}  // namespace mw::engine::test
