// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds of a proof cover sums in another order but no mistakes.
#include "core/train/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/rng.h"
#include "tests/engine/tiny_model.h"

namespace mw::train {
namespace {

struct State {
  double value, first, second;
};

// AdamW in double precision, as in PyTorch.
State adamw(const UpdateInput& u, State s, double gradient, double coefficient) {
  const double g = gradient * coefficient;
  const double m = u.options.beta1 * s.first + (1 - u.options.beta1) * g;
  const double v = u.options.beta2 * s.second + (1 - u.options.beta2) * g * g;
  const double mh = m / (1 - std::pow(u.options.beta1, static_cast<double>(u.t)));
  const double vh = v / (1 - std::pow(u.options.beta2, static_cast<double>(u.t)));
  return {s.value * (1 - u.rate * u.options.weight_decay) - u.rate * mh / (std::sqrt(vh) + u.options.epsilon), m, v};
}

struct Sample {
  UpdateInput of;
  State before;
  double gradient, off;
};

Sample sample(Rng& rng) {
  const auto scaled = [&](double low, double high) {  // of any size in between
    return std::exp(std::log(low) + static_cast<double>(rng.next_uniform()) * (std::log(high) - std::log(low)));
  };
  Sample s{.of = {.options = {}, .t = 1 + static_cast<std::int64_t>(rng.below(5)), .rate = scaled(1e-5, 1e-1)},
           .before = {},
           .gradient = scaled(1e-12, 1) * (rng.below(2) ? 1 : -1),
           .off = 0};
  s.off = std::abs(s.gradient) * scaled(1e-7, 1e3);
  s.before = {scaled(1e-3, 1), 0, 0};
  if (s.of.t > 1) {
    s.before.first = s.gradient * scaled(1e-2, 1e2) * (rng.below(2) ? 1 : -1);
    s.before.second = s.before.first * s.before.first * scaled(1e-4, 1);
  }
  if (rng.below(2)) s.of.coefficient = scaled(1e-3, 1), s.of.off_coefficient = scaled(1e-7, 1e-3);
  return s;
}

TEST(UpdateBound, HoldsForEveryGradientWithinItsError) {
  Rng rng({5});
  int tight = 0;
  for (int i = 0; i < 20000; ++i) {
    const Sample s = sample(rng);
    const UpdateBound bound = update_bound(s.of, s.before.value, s.before.first, s.before.second, s.gradient, s.off);
    const State one = adamw(s.of, s.before, s.gradient, s.of.coefficient);
    for (const double side : {-1.0, -0.3, 0.01, 0.7, 1.0}) {
      const double coefficient = s.of.coefficient * (1 + side * s.of.off_coefficient * 0.99);
      const double gradient = s.gradient + side * s.off * (s.of.off_coefficient > 0 ? 0.99 : 1);
      const State other = adamw(s.of, s.before, gradient, coefficient);
      // The bound neglects the product of both errors, which is much smaller.
      const double slack = 1 + s.of.off_coefficient + 1e-9;
      ASSERT_LE(std::abs(one.value - other.value), bound.value * slack) << i << " " << side;
      ASSERT_LE(std::abs(one.first - other.first), bound.first * slack) << i << " " << side;
      ASSERT_LE(std::abs(one.second - other.second), bound.second * slack + 1e-300) << i << " " << side;
      tight += std::abs(one.value - other.value) > 0.1 * bound.value;
    }
  }
  EXPECT_GT(tight, 10000);  // of 100,000: it is no bound that anything would keep
}

TEST(UpdateBound, IsTightForElementWithGradient) {
  const UpdateInput first{.options = {}, .t = 1, .rate = 1e-3};
  EXPECT_LT(update_bound(first, 0.1, 0, 0, 0.5, 0.5e-4).value, 1e-3 * 1e-3);  // a thousandth of a step
  EXPECT_LE(update_bound(first, 0.1, 0, 0, 1e-9, 1e-6).value, 1e-3 * 2.1);    // rounding alone: up to a step each way
}

TEST(StepRounding, BoundsSumsInOtherOrder) {
  // Tests one sum; proofs test whole steps.
  Rng rng({6});
  for (const int n : {100, 10000}) {
    model::Config c = engine::test::tiny_config();
    c.vocab = n;
    const double relative = step_rounding(c, {.tokens = 1, .longest = 1, .loss = 100}).relative;
    for (int i = 0; i < 50; ++i) {
      std::vector<float> terms(static_cast<size_t>(n));
      double magnitude = 0;
      for (float& t : terms) t = rng.next_uniform() - 0.5f, magnitude += std::abs(static_cast<double>(t));
      const float forward = std::accumulate(terms.begin(), terms.end(), 0.0f);
      const float backward = std::accumulate(terms.rbegin(), terms.rend(), 0.0f);
      ASSERT_LE(std::abs(forward - backward), relative * magnitude);
    }
  }
}

TEST(StepRounding, IsSmallAndGrowsWithRootOfLength) {
  model::Config c = engine::test::tiny_config();
  const double small = step_rounding(c, {.tokens = 100, .longest = 10, .loss = 2}).relative;
  EXPECT_GT(small, 1e-6);
  EXPECT_LT(small, 1e-4);
  const auto layers = c.layers;
  for (int i = 0; i < 15; ++i) c.layers.insert(c.layers.end(), layers.begin(), layers.end());
  const double large = step_rounding(c, {.tokens = 1600, .longest = 10, .loss = 2}).relative;
  EXPECT_NEAR(large / small, 4, 0.5);
  EXPECT_LT(step_rounding(c, {.tokens = 1600, .longest = 10, .loss = 2, .bf16_products = true}).relative, 0.2);
}

TEST(StepRounding, AllowsForCancellationAtSmallLoss) {
  const model::Config c = engine::test::tiny_config();
  EXPECT_LT(step_rounding(c, {.tokens = 9, .longest = 3, .loss = 3}).cancellation, 1.1);
  EXPECT_NEAR(step_rounding(c, {.tokens = 9, .longest = 3, .loss = 0.01}).cancellation, 100, 1);
}

}  // namespace
}  // namespace mw::train
