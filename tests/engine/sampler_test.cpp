// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/engine/generate/paged_decoder.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() : device_(Bytes(0), 2), network_(tiny_config(), device_, model::WeightType::f32) {
    fill(network_, 8, 0.25f);
    network_.add_lora(all_projections(), 5);
    randomise_adapters(network_, 6);
  }
  // Logits after every prefix of `ids`, by the full forward.
  std::vector<float> full_logits(const std::vector<int>& ids) {
    const int n = static_cast<int>(ids.size());
    OwnedBatch b{
        1, n, ids, std::vector<int>(ids.size(), -1), std::vector<int>(ids.size()), std::vector<int>(ids.size(), 0)};
    std::iota(b.positions.begin(), b.positions.end(), 0);
    std::vector<float> out(ids.size() * 61);
    network_.logits(b, out);
    return out;
  }
  int greedy_next(const std::vector<int>& ids) {
    const std::vector<float> all = full_logits(ids);
    const auto last = all.end() - 61;
    return static_cast<int>(std::max_element(last, all.end()) - last);
  }
  Device device_;
  Network network_;
  const std::vector<int> prompt_{2, 9, 33, 41, 7, 7, 12};
};

TEST_F(SamplerTest, GreedyDecodingThroughTheCacheEqualsFullForwards) {  // far past the window of 5
  const std::vector<int> generated = Sampler(network_).generate(prompt_, {.max_new_tokens = 30});
  ASSERT_EQ(generated.size(), 30u);
  std::vector<int> ids = prompt_;
  for (const int id : generated) {
    EXPECT_EQ(id, greedy_next(ids)) << "after " << ids.size() << " tokens";
    ids.push_back(id);
  }
}

class Decode : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, Decode, ::testing::ValuesIn(families()), family_name);

TEST_P(Decode, CachedLogitsEqualFullForwardLogits) {  // prompts shorter and longer than the window, 27 tokens in all
  Device device(Bytes(0), 2);
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
    model::Config config = as_family(tiny_config(), GetParam());
    if (type != model::WeightType::f32)
      config.experts_per_token = config.experts;  // a rounded score may choose another
    Transformer net(config, device, type, NetworkUse::training);
    net.weights.load({.f32 =
                          [](size_t index, std::int64_t first, std::span<float> out) {
                            const Rng rng{8, index};
                            for (size_t i = 0; i < out.size(); ++i)
                              out[i] = 0.25f * rng.normal_at(static_cast<std::uint64_t>(first) + i);
                          },
                      .bf16 = {}},
                     {});
    net.add_lora(all_projections(), 5);
    OwnedBatch b{1, 27, std::vector<int>(27), std::vector<int>(27, -1), std::vector<int>(27), std::vector<int>(27, 0)};
    for (size_t i = 0; i < 27; ++i) b.ids[i] = static_cast<int>(7 * i + 3) % 61, b.positions[i] = static_cast<int>(i);
    std::vector<float> expected(27 * 61);
    all_logits(net, b, {}, expected);
    for (const size_t prompt : {size_t{1}, size_t{4}, size_t{5}, size_t{15}}) {
      SequenceDecoder decoder(net, std::vector<int>{27});
      for (size_t end = prompt; end <= 27; ++end) {
        const size_t first = end == prompt ? 0 : end - 1;
        const Continuation step{0, std::span<const int>(b.ids).subspan(first, end - first)};
        const std::span<const float> logits = decoder.advance({&step, 1});
        for (size_t i = 0; i < 61; ++i)
          ASSERT_NEAR(logits[i], expected[(end - 1) * 61 + i], tolerance(type, 2e-5f, 6e-2f))
              << "token " << end << " of prompt " << prompt;
      }
    }
  }
}

const std::vector<std::vector<int>> kRagged{
    {2}, {2, 9, 33, 41, 7, 7, 12}, {2, 5, 5, 60}, {2, 1, 17, 29, 3, 44, 8, 8, 8, 21, 50, 0, 13}, {2, 58}};

TEST_F(SamplerTest, ABatchOfRaggedPromptsEqualsEachPromptAlone) {
  const auto together = Sampler(network_).generate_batch(kRagged, {.max_new_tokens = 20});
  ASSERT_EQ(together.size(), kRagged.size());
  for (size_t row = 0; row < kRagged.size(); ++row)
    EXPECT_EQ(together[row], Sampler(network_).generate(kRagged[row], {.max_new_tokens = 20})) << "row " << row;
}

TEST_F(SamplerTest, SampledTokensDependOnSeedRowAndPositionOnly) {
  const options::SampleOptions o{.max_new_tokens = 15, .temperature = 1.2f, .top_k = 30, .top_p = 0.95f, .seed = 11};
  const auto together = Sampler(network_).generate_batch(kRagged, o);
  for (size_t row = 0; row < kRagged.size(); ++row) {  // what full forwards and the definition say
    std::vector<int> ids = kRagged[row];
    for (size_t position = 0; position < 15; ++position) {
      std::vector<float> all = full_logits(ids);
      const int id = pick_token(std::span(all).last(61), o,
                                sampling_uniform(11, static_cast<int>(row), static_cast<int>(position)));
      ASSERT_EQ(together[row][position], id) << "row " << row << " position " << position;
      ids.push_back(id);
    }
  }
  std::vector<std::vector<int>> others = kRagged;
  others[0] = {2, 30, 31}, others[2] = {2, 6, 6, 6, 6, 6, 6, 6, 6};
  const auto in_other_company = Sampler(network_).generate_batch(others, o);
  for (const size_t row : {1u, 3u, 4u}) EXPECT_EQ(in_other_company[row], together[row]) << "row " << row;
  const std::vector<std::vector<int>> twins(4, kRagged[1]);
  const auto drawn = Sampler(network_).generate_batch(twins, o);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 4u) << "rows of one prompt draw their own";
}

TEST_F(SamplerTest, PromptsOfSeveralPassesEqualEachPromptAlone) {
  std::vector<std::vector<int>> prompts;
  for (int row = 0; row < 35; ++row) {
    prompts.emplace_back();
    for (int i = 0; i < 60 + row; ++i) prompts.back().push_back((row * 17 + i * i) % 61);
  }
  const auto together = Sampler(network_).generate_batch(prompts, {.max_new_tokens = 3});
  for (const size_t row : {0u, 13u, 34u})
    EXPECT_EQ(together[row], Sampler(network_).generate(prompts[row], {.max_new_tokens = 3})) << "row " << row;
}

// Operations of all projections since the last call.
double projection_flops(Network& network) {
  double sum = 0;
  for (const auto& kernel : network.take_profile())
    if (kernel.name == "projections") sum += kernel.flops;
  return sum;
}

TEST_F(SamplerTest, PromptsComputeOnlyKeysAndValuesInTheLastLayerBeforeTheirLastToken) {
  Network plain(tiny_config(), device_, model::WeightType::f32);
  fill(plain, 8, 0.25f);
  Sampler(plain).generate(std::vector<int>{2}, {.max_new_tokens = 1});
  const double per_token = projection_flops(plain);
  Sampler(plain).generate(std::vector<int>{2, 5, 9, 33, 7}, {.max_new_tokens = 1});
  const model::Layer& last = plain.config().layers.back();
  const double unneeded = 2.0 * plain.config().dim * (2 * last.heads * last.head_dim + 3 * last.mlp_dim);
  EXPECT_DOUBLE_EQ(projection_flops(plain), 5 * per_token - 4 * unneeded);
}

TEST_F(SamplerTest, RowsThatEndedLeaveTheBatchAndCostNothing) {
  projection_flops(network_);
  const std::vector<std::vector<int>> prompts{{5}, {9}, {2}};
  std::vector<std::pair<int, int>> seen;
  const auto out = Sampler(network_).generate_batch(prompts, {.max_new_tokens = 10}, {}, [&](int row, int id) {
    seen.emplace_back(row, id);
    return row != 0 || std::count_if(seen.begin(), seen.end(), [](auto& s) { return s.first == 0; }) < 3;
  });
  EXPECT_EQ(out[0].size(), 3u);
  EXPECT_EQ(out[1].size(), 10u);
  std::vector<int> rows;
  for (const auto& [row, id] : seen) rows.push_back(row);
  EXPECT_EQ(rows, (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  const double batch = projection_flops(network_);
  Sampler(network_).generate(std::vector<int>{2}, {.max_new_tokens = 1});
  const double per_token = projection_flops(network_);
  EXPECT_DOUBLE_EQ(batch, per_token * (1 + 2 + 1 + 9 + 1 + 9)) << "every token but a row's last, once";
}

TEST_F(SamplerTest, AStopEndsEveryRowWithWhatItHas) {
  std::stop_source stop;
  int tokens = 0;
  const auto out = Sampler(network_).generate_batch(kRagged, {.max_new_tokens = 20}, stop.get_token(), [&](int, int) {
    if (++tokens == 12) stop.request_stop();
    return true;
  });
  for (const auto& row : out) EXPECT_EQ(row.size(), 3u);  // the step under way is finished
}

TEST_F(SamplerTest, SameSeedSameTextOtherSeedOtherText) {
  options::SampleOptions o{.max_new_tokens = 24, .temperature = 1.5f, .seed = 4};
  const std::vector<int> once = Sampler(network_).generate(prompt_, o), again = Sampler(network_).generate(prompt_, o);
  EXPECT_EQ(once, again);
  o.seed = 5;
  EXPECT_NE(Sampler(network_).generate(prompt_, o), once);
}

TEST_F(SamplerTest, TopKOfOneAndTinyTopPAreGreedy) {
  const std::vector<int> greedy = Sampler(network_).generate(prompt_, {.max_new_tokens = 12});
  EXPECT_EQ(Sampler(network_).generate(prompt_, {.max_new_tokens = 12, .temperature = 2, .top_k = 1, .seed = 3}),
            greedy);
  EXPECT_EQ(Sampler(network_).generate(prompt_, {.max_new_tokens = 12, .temperature = 2, .top_p = 1e-6f, .seed = 3}),
            greedy);
}

TEST_F(SamplerTest, TopKDrawsOnlyFromTheBestK) {
  const std::vector<float> all = full_logits(prompt_);
  std::vector<int> order(61);
  std::iota(order.begin(), order.end(), 0);
  const float* last = all.data() + all.size() - 61;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return last[a] > last[b]; });
  std::set<int> drawn;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    drawn.insert(
        Sampler(network_).generate(prompt_, {.max_new_tokens = 1, .temperature = 5, .top_k = 3, .seed = seed}).at(0));
  EXPECT_EQ(drawn, std::set<int>(order.begin(), order.begin() + 3));
}

TEST_F(SamplerTest, StopsAtStopIdsCallbackAndStopToken) {
  const std::vector<int> greedy = Sampler(network_).generate(prompt_, {.max_new_tokens = 12});
  const std::vector<int> cut = Sampler(network_).generate(prompt_, {.max_new_tokens = 12, .stop_ids = {greedy[4]}});
  const auto first = std::find(greedy.begin(), greedy.end(), greedy[4]);
  EXPECT_EQ(cut, std::vector<int>(greedy.begin(), first));
  std::vector<int> seen;
  const auto three = Sampler(network_).generate(prompt_, {.max_new_tokens = 12}, {},
                                                [&](int id) { return seen.push_back(id), seen.size() < 3; });
  EXPECT_EQ(three, std::vector<int>(greedy.begin(), greedy.begin() + 3));
  EXPECT_EQ(seen, three);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(Sampler(network_).generate(prompt_, {.max_new_tokens = 12}, stop.get_token()).empty());
}

TEST_F(SamplerTest, FreesItsCacheAndCountsIt) {
  Sampler(network_).generate(prompt_, {.max_new_tokens = 100}, {}, [&](int) {
    EXPECT_GT(device_.arena.use().now[MemoryCategory::kv_cache].value, 0);
    return false;
  });
  EXPECT_EQ(device_.arena.use().now[MemoryCategory::kv_cache].value, 0);
}

TEST_F(SamplerTest, RefusesAnEmptyPromptAndForeignIds) {
  EXPECT_THROW(Sampler(network_).generate({}, {}), Error);
  const std::vector<int> bad{2, 61};
  EXPECT_THROW(Sampler(network_).generate(bad, {}), Error);
}

}  // namespace
}  // namespace mw::engine::test
