// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/generate/scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

constexpr int kVocab = 61;

class ScoreTest : public testing::Test {
 protected:
  ScoreTest() : device_(Bytes(0), 2), network_(tiny_config(), device_, model::WeightType::f32) {
    fill(network_, 8, 0.25f);
    network_.add_lora(all_projections(), 5);
    randomise_adapters(network_, 6);
  }
  Device device_;
  Network network_;
};

// By the definition, in double, from the unchunked logits.
TEST_F(ScoreTest, EqualsTheSoftmaxOfAllLogitsWhateverTheChunk) {
  const OwnedBatch batch = packed_batch(3, 31, kVocab);
  std::vector<float> logits(batch.ids.size() * kVocab);
  network_.logits(batch, logits);
  for (const int chunk : {0, 1, 7, 64, 1000}) {
    constexpr int kBest = 9;
    const auto scores = Scorer(network_).score(batch, {.chunk = chunk, .top_k = kBest});
    ASSERT_TRUE(scores);
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (batch.targets[i] < 0 || batch.segments[i] < 0) {
        EXPECT_EQ(scores->target.span()[i], 0.0f);
        EXPECT_EQ(scores->ids.span()[i * kBest], -1);
        continue;
      }
      const float* x = logits.data() + i * kVocab;
      double sum = 0;
      for (int j = 0; j < kVocab; ++j) sum += std::exp(static_cast<double>(x[j]));
      EXPECT_NEAR(scores->target.span()[i], x[batch.targets[i]] - std::log(sum), 2e-5) << "chunk " << chunk;
      std::vector<int> order(kVocab);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) { return x[a] > x[b]; });
      for (size_t j = 0; j < kBest; ++j) {
        EXPECT_EQ(scores->ids.span()[i * kBest + j], order[j]) << "chunk " << chunk << " position " << i;
        EXPECT_NEAR(scores->log_probs.span()[i * kBest + j], x[order[j]] - std::log(sum), 2e-5);
      }
    }
  }
}

TEST_F(ScoreTest, ManyPassesAddUpToTheLoss) {
  const OwnedBatch batch = packed_batch(45, 100, kVocab);  // three passes
  const auto all = Scorer(network_).score(batch, {.chunk = 50});
  ASSERT_TRUE(all);
  double sum = 0;
  for (const float p : all->target.span()) sum -= static_cast<double>(p);
  EXPECT_NEAR(sum, network_.evaluate(batch, {}).sum, 1e-4 * sum);
}

TEST_F(ScoreTest, AStopLeavesNothingAndBadArraysAreRefused) {
  const OwnedBatch batch = packed_batch(45, 100, kVocab);
  std::stop_source stop;
  long seen = 0;
  EXPECT_FALSE(Scorer(network_).score(batch, {.chunk = 8}, stop.get_token(), [&](long tokens) {
    seen = tokens;
    stop.request_stop();
  }));
  EXPECT_EQ(seen, 2000);
  EXPECT_EQ(device_.arena.use().now[MemoryCategory::logits].value, 4096) << "the chunk that the network keeps";
  TokenBatch bad = batch;
  bad.rows = 44;
  EXPECT_THROW(Scorer(network_).score(bad, {}), Error);
}

TEST(Likeliest, AgreesWithASortWhereverTheBestLie) {
  for (const int kind : {0, 1, 2}) {
    std::vector<float> x(3001);
    const Rng rng{4};
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = kind == 0   ? rng.normal_at(i)
             : kind == 1 ? static_cast<float>(i)                        // the best come last
                         : std::floor(3 * std::abs(rng.normal_at(i)));  // ties
    std::vector<int> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)]; });
    for (const size_t k : {size_t{0}, size_t{1}, size_t{128}, size_t{3001}, size_t{9999}}) {
      const auto best = likeliest(x, k);
      ASSERT_EQ(best.size(), std::min(k, x.size()));
      for (size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].id, order[i]) << kind << " " << k;
    }
  }
}

}  // namespace
}  // namespace mw::engine::test
