// SPDX-License-Identifier: GPL-3.0-or-later
// pick_token maps (0, 1) onto tokens; sweeping it evenly must give every token its exact share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/rng.h"
#include "core/engine/generate/sampler.h"

namespace mw::engine::test {
namespace {

std::vector<float> random_logits(size_t n, std::uint64_t seed, float spread) {
  std::vector<float> x(n);
  const Rng rng{seed};
  for (size_t i = 0; i < n; ++i) x[i] = spread * rng.normal_at(i);
  return x;
}

// Probabilities by the definition, in double: softmax(x / T), those of min_p times the best, the k best, then
// the fewest best that reach top_p.
std::map<int, double> expected(const std::vector<float>& logits, const options::SampleOptions& o) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int id) { return static_cast<double>(logits[static_cast<size_t>(id)]); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return at(a) > at(b); });
  if (o.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(o.top_k)));
  double total = 0;
  std::vector<double> p;
  for (const int id : order) p.push_back(std::exp((at(id) - at(order[0])) / static_cast<double>(o.temperature)));
  while (p.back() < static_cast<double>(o.min_p)) p.pop_back();  // the likeliest has 1
  for (const double share : p) total += share;
  if (o.top_p < 1) {
    double mass = 0;
    size_t keep = 0;
    while (keep < p.size() && mass < static_cast<double>(o.top_p) * total) mass += p[keep++];
    p.resize(keep);
    total = mass;
  }
  std::map<int, double> out;
  for (size_t i = 0; i < p.size(); ++i) out[order[i]] = p[i] / total;
  return out;
}

class Pick : public testing::TestWithParam<options::SampleOptions> {};

TEST_P(Pick, GivesEveryTokenItsShareAndNoOther) {
  constexpr int kDraws = 20000;
  for (const float spread : {0.3f, 2.0f, 12.0f}) {
    const std::vector<float> logits = random_logits(97, 3, spread);
    const std::map<int, double> shares = expected(logits, GetParam());
    std::map<int, int> drawn;
    for (int i = 0; i < kDraws; ++i) {
      std::vector<float> scratch = logits;
      ++drawn[pick_token(scratch, GetParam(), (i + 0.5) / kDraws)];
    }
    for (const auto& [id, count] : drawn) EXPECT_TRUE(shares.contains(id)) << id << " is not in the support";
    for (const auto& [id, share] : shares) EXPECT_NEAR(drawn[id], share * kDraws, 2) << id << ", spread " << spread;
  }
}

INSTANTIATE_TEST_SUITE_P(Sampling, Pick,
                         testing::Values(options::SampleOptions{.temperature = 1},
                                         options::SampleOptions{.temperature = 0.4f},
                                         options::SampleOptions{.temperature = 3},
                                         options::SampleOptions{.temperature = 1, .top_k = 5},
                                         options::SampleOptions{.temperature = 1, .top_p = 0.5f},
                                         options::SampleOptions{.temperature = 1, .top_p = 0.95f},
                                         options::SampleOptions{.temperature = 1, .min_p = 0.1f},
                                         options::SampleOptions{.temperature = 1.5f, .top_p = 0.9f, .min_p = 0.02f},
                                         options::SampleOptions{.temperature = 1, .top_k = 10, .min_p = 0.3f},
                                         options::SampleOptions{.temperature = 0.7f, .top_k = 40, .top_p = 0.9f},
                                         options::SampleOptions{.temperature = 2, .top_k = 200, .top_p = 0.999f}));

TEST(PickLarge, KeepsExactlyTheRightTokensOfARealVocabulary) {
  constexpr size_t kVocabulary = 262144;
  for (const float spread : {1.0f, 4.0f, 9.0f}) {
    std::vector<float> logits = random_logits(kVocabulary, 5, spread);
    for (const options::SampleOptions& o : {options::SampleOptions{.temperature = 1, .top_k = 64},
                                            options::SampleOptions{.temperature = 1, .top_p = 0.8f},
                                            options::SampleOptions{.temperature = 1, .top_k = 1000, .top_p = 0.5f}}) {
      const std::map<int, double> shares = expected(logits, o);
      for (int i = 0; i < 20; ++i) {
        std::vector<float> scratch = logits;
        EXPECT_TRUE(shares.contains(pick_token(scratch, o, (i + 0.5) / 20)));
      }
      const auto least = std::min_element(shares.begin(), shares.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
      std::vector<float> scratch = logits;
      const int last = pick_token(scratch, o, 1 - 0x1p-53);
      EXPECT_LE(shares.at(last), least->second * 1.2) << "the far end belongs to the least likely";
    }
  }
}

TEST(PickLarge, GreedyIsTheFirstOfTheLargest) {
  std::vector<float> logits = random_logits(262144, 6, 1.0f);
  logits[200000] = logits[5000] = 30;
  EXPECT_EQ(pick_token(logits, {}, 0.9), 5000);
  logits[4] = 31;
  EXPECT_EQ(pick_token(logits, {}, 0.9), 4);
}

TEST(PickSmall, ATinyTemperatureIsGreedyAndOverflowsNothing) {
  for (const double u : {0x1p-54, 0.5, 1 - 0x1p-53}) {
    std::vector<float> logits{-3e4f, 100.0f, 99.0f, 3e4f, 2e4f};
    EXPECT_EQ(pick_token(logits, {.temperature = 1e-6f}, u), 3);
  }
}

// 64 bins over rows and positions, each row's stream its own: chi-square with 63 degrees of freedom.
TEST(SamplingUniform, IsUniformOverPositionsAndRowsAndSeedsDiffer) {
  const auto chi_square = [](auto value) {
    constexpr int kDraws = 64000;
    std::vector<int> bins(64);
    for (int i = 0; i < kDraws; ++i) ++bins[static_cast<size_t>(value(i) * 64)];
    double x = 0;
    for (const int count : bins) x += (count - 1000.0) * (count - 1000.0) / 1000.0;
    return x;
  };
  EXPECT_LT(chi_square([](int i) { return sampling_uniform(7, 3, i); }), 120);  // p = 2e-5
  EXPECT_LT(chi_square([](int i) { return sampling_uniform(7, i, 3); }), 120);
  EXPECT_LT(chi_square([](int i) { return sampling_uniform(static_cast<std::uint64_t>(i), 0, 0); }), 120);
  EXPECT_LT(chi_square([](int i) {
              const double d = sampling_uniform(7, 0, i) - sampling_uniform(7, 1, i);
              return d < 0 ? d + 1 : d;  // uniform again if the rows are independent
            }),
            120);
}

}  // namespace
}  // namespace mw::engine::test
