// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/sizing.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/engine/kernels/packed.h"
#include "core/engine/transformer/network.h"

namespace mw::serve {
namespace {

model::Config small_config() {
  model::Config c;
  c.id = "small";
  c.hf_model_type = "gemma3_text";
  c.hf_architecture = "Gemma3ForCausalLM";
  c.vocab = 2048, c.dim = 64;
  c.sliding_window = 16, c.max_positions = 256;
  c.qk_norm = true;
  c.attention_scale = 0.25f;
  for (int i = 0; i < 2; ++i) {
    model::Layer l;
    l.attention = i == 1 ? model::Attention::full : model::Attention::sliding;
    l.heads = 4, l.kv_heads = 2, l.head_dim = 16, l.mlp_dim = 128;
    l.rope_theta = 1e4f;
    c.layers.push_back(l);
  }
  return c;
}

class SizingTest : public testing::Test {
 protected:
  SizingTest() {
    request.config = small_config();
    request.model = {.lora = {}, .threads = 2};
    request.capacity = Bytes(std::int64_t{1} << 40);
    request.settings.prompt_len = 20, request.settings.new_tokens = 12, request.settings.top_k = 16;
    request.settings.batches = {1, 3, 9};
    request.network = [this]() -> engine::Network& {
      ++loads;
      network.reset();
      device = std::make_unique<engine::Device>(request.capacity, 2);
      network = std::make_unique<engine::Network>(request.config, *device, model::WeightType::f32);
      network->init_random(1);
      return *network;
    };
    callbacks.point = [this](const MeasuredSize& p) { points.push_back(p); };
  }
  const MeasuredSize& at(options::Workload workload, int batch) const {
    for (const MeasuredSize& p : points)
      if (p.workload == workload && p.batch == batch) return p;
    throw std::out_of_range("no such point");
  }
  SizingRequest request;
  SizingCallbacks callbacks;
  std::vector<MeasuredSize> points;
  std::unique_ptr<engine::Device> device;
  std::unique_ptr<engine::Network> network;
  int loads = 0;
};

TEST_F(SizingTest, MeasuresEveryPointInOrderWithThePredictedMemory) {
  EXPECT_TRUE(measure_sizes(request, callbacks, {}));
  ASSERT_EQ(points.size(), 9u);
  EXPECT_EQ(loads, 1);
  size_t next = 0;
  for (const options::Workload workload :
       {options::Workload::rollout, options::Workload::forward, options::Workload::chunked_forward})
    for (const int batch : {1, 3, 9}) {
      const MeasuredSize& p = points[next++];
      EXPECT_EQ(p.workload, workload);
      EXPECT_EQ(p.batch, batch);
      ASSERT_TRUE(p.measured && p.fits());
      EXPECT_EQ(p.measured->tokens, batch * (workload == options::Workload::rollout ? 12 : 32));
      EXPECT_GT(p.measured->seconds, 0);
      EXPECT_GE(p.measured->repeats, 1);
      if (workload == options::Workload::rollout) {
        EXPECT_GT(p.measured->prefill_seconds, 0);
        EXPECT_NEAR(p.measured->prefill_seconds + 11 * p.measured->step_seconds, p.measured->seconds, 1e-9);
      }
      EXPECT_NEAR(p.predicted.total() / p.measured->memory.total(), 1, 0.01) << to_string(workload) << " " << batch;
    }
}

TEST_F(SizingTest, MemoryGrowsByWorkload) {
  measure_sizes(request, callbacks, {});
  const auto bytes = [&](options::Workload workload, int batch, MemoryCategory category) {
    return static_cast<double>(at(workload, batch).measured->memory[category].value);
  };
  const auto logits = MemoryCategory::logits;
  EXPECT_NEAR(bytes(options::Workload::forward, 9, logits) / bytes(options::Workload::forward, 1, logits), 9, 0.5);
  const double kept = 9 * 32 * (16 * 8 + 4) + 3 * 4096;  // kept for every position, in whole pages
  EXPECT_LE(bytes(options::Workload::chunked_forward, 9, logits), 64 * 2048 * 4 + kept);
  // Two layers, keys and values: 32 tokens of a row in blocks of 16, and a window of 16 tokens, which spans two blocks.
  EXPECT_NEAR(bytes(options::Workload::rollout, 9, MemoryCategory::kv_cache), 9 * 2 * (32 + 32) * 32 * 4, 4 * 4096);
}

TEST_F(SizingTest, SkipsPointsThatDoNotFitAndNamesTheLargestThatDoes) {
  request.settings.workloads = {options::Workload::forward, options::Workload::rollout};
  request.settings.batches = {1, 40, 4000};
  request.capacity = Bytes(5'000'000 + 2 * sizes::kPackedBlocks * 2);  // the products' workspace of two threads
  EXPECT_TRUE(measure_sizes(request, callbacks, {}));
  ASSERT_EQ(points.size(), 6u);
  const MeasuredSize& too_large = at(options::Workload::forward, 40);
  EXPECT_FALSE(too_large.fits());
  EXPECT_FALSE(too_large.measured);
  EXPECT_GT(too_large.largest_batch, 1);
  EXPECT_LT(too_large.largest_batch, 40);
  EXPECT_EQ(at(options::Workload::forward, 4000).largest_batch, too_large.largest_batch);
  EXPECT_TRUE(at(options::Workload::forward, 1).measured);
  EXPECT_LE(device->arena.use().at_peak.total(), request.capacity);
  // The named batch fits and the next one does not.
  points.clear();
  const int largest = too_large.largest_batch;
  request.settings.workloads = {options::Workload::forward};
  request.settings.batches = {largest, largest + 1};
  measure_sizes(request, callbacks, {});
  EXPECT_TRUE(points.at(0).measured) << points.at(0).error;
  EXPECT_FALSE(points.at(1).fits());
}

TEST_F(SizingTest, LoadsNothingIfTheWeightsDoNotFit) {
  request.capacity = Bytes(1000);
  EXPECT_TRUE(measure_sizes(request, callbacks, {}));
  EXPECT_EQ(loads, 0);
  ASSERT_EQ(points.size(), 9u);
  for (const MeasuredSize& p : points) EXPECT_EQ(p.largest_batch, 0);
}

TEST_F(SizingTest, ReportsProgressAndKeepsCompletePointsOnStop) {
  long last = 0;
  callbacks.progress = [&](const std::string& phase, long done, long total) {
    EXPECT_GE(done, last) << phase;
    EXPECT_LE(done, total);
    last = done;
  };
  request.settings.batches = {2};
  measure_sizes(request, callbacks, {});
  EXPECT_EQ(last, 1000);
  points.clear();
  std::stop_source stop;
  callbacks.progress = [&](const std::string& phase, long, long) {
    if (phase == "forward, batch 9") stop.request_stop();
  };
  request.settings.batches = {2, 9};
  EXPECT_FALSE(measure_sizes(request, callbacks, stop.get_token()));
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points.back().workload, options::Workload::forward);
  EXPECT_EQ(points.back().batch, 2);
}

}  // namespace
}  // namespace mw::serve
