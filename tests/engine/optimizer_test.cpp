// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/transformer/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace mw::engine {
namespace {

struct Problem {
  Device device{Bytes(0), 2};
  std::vector<float> value{1.0f, -2.0f, 0.5f}, gradient{0.1f, -0.2f, 0.3f};
  TrainableTensor parameter(bool decays = true) { return {"p", value, gradient, decays}; }
};

// torch.optim.AdamW written out in double.
struct Reference {
  std::vector<double> value, m, v;
  void step(int t, const std::vector<float>& g, double lr, double decay, double scale) {
    for (size_t i = 0; i < value.size(); ++i) {
      const double gi = static_cast<double>(g[i]) * scale;
      value[i] *= 1 - lr * decay;
      m[i] = 0.9 * m[i] + 0.1 * gi;
      v[i] = 0.999 * v[i] + 0.001 * gi * gi;
      const double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8;
      value[i] -= lr / (1 - std::pow(0.9, t)) * m[i] / denominator;
    }
  }
};

TEST(AdamW, FirstStepMovesByTheLearningRate) {  // by hand: m/(1-b1) = g, v/(1-b2) = g^2, so a step of lr * sign(g)
  Problem p;
  const TrainableTensor parameter = p.parameter();
  AdamW adam(p.device, std::span(&parameter, 1), {});
  adam.step(1, 0.01f, 0, 0);
  EXPECT_NEAR(p.value[0], 0.99f, 1e-6f);
  EXPECT_NEAR(p.value[1], -1.99f, 1e-6f);
  EXPECT_NEAR(p.value[2], 0.49f, 1e-6f);
  EXPECT_NEAR(adam.first_moment(0)[2], 0.03f, 1e-8f);
  EXPECT_NEAR(adam.second_moment(0)[2], 9e-5f, 1e-10f);
}

TEST(AdamW, FollowsTorchOverManyStepsWithDecayAndClipping) {
  Problem p;
  const TrainableTensor parameter = p.parameter();
  AdamW adam(p.device, std::span(&parameter, 1), {.weight_decay = 0.1});
  Reference reference{{1.0, -2.0, 0.5}, {0, 0, 0}, {0, 0, 0}};
  for (int t = 1; t <= 50; ++t) {
    for (size_t i = 0; i < 3; ++i) p.gradient[i] = std::sin(static_cast<float>(t) * (1.0f + static_cast<float>(i)));
    double norm = 0;
    for (const float g : p.gradient) norm += static_cast<double>(g) * static_cast<double>(g);
    norm = std::sqrt(norm);
    EXPECT_NEAR(adam.gradient_norm(), norm, 1e-9);
    adam.step(t, 0.02f, 0.5f, norm);
    reference.step(t, p.gradient, static_cast<double>(0.02f), 0.1, std::min(1.0, 0.5 / (norm + 1e-6)));
    for (size_t i = 0; i < 3; ++i) ASSERT_NEAR(p.value[i], reference.value[i], 3e-6) << "step " << t;
  }
}

TEST(AdamW, DoesNotDecayNormsOrClipSmallGradients) {
  Problem p;
  const TrainableTensor parameter = p.parameter(false);
  AdamW adam(p.device, std::span(&parameter, 1), {.weight_decay = 10});
  adam.step(1, 0.01f, 100.0f, adam.gradient_norm());
  EXPECT_NEAR(p.value[0], 0.99f, 1e-6f);
}

TEST(AdamW, NormOfLargeTensorsIsTheSameForEveryThreadCount) {
  std::vector<float> value(300001), gradient(300001);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
  const TrainableTensor parameter{"p", value, gradient, true};
  Device one(Bytes(0), 1), three(Bytes(0), 3);
  AdamW a(one, std::span(&parameter, 1), {}), b(three, std::span(&parameter, 1), {});
  EXPECT_EQ(a.gradient_norm(), b.gradient_norm());
  EXPECT_NEAR(a.gradient_norm(), std::sqrt(300001 / 2.0), 1.0);
}

TEST(AdamW, ManyParametersMoveAsEachWouldAlone) {  // of sizes around the blocks that threads share
  const std::vector<size_t> sizes{5, 70000, 1, 4096, 131072, 17};
  Device device(Bytes(0), 3), alone(Bytes(0), 1);
  std::vector<std::vector<float>> value, gradient;
  for (const size_t size : sizes) {
    value.emplace_back(size, 1.0f), gradient.emplace_back(size);
    for (size_t i = 0; i < size; ++i) gradient.back()[i] = std::sin(static_cast<float>(i + size));
  }
  std::vector<std::vector<float>> expected = value;
  std::vector<TrainableTensor> parameters;
  for (size_t p = 0; p < sizes.size(); ++p) parameters.push_back({"p", value[p], gradient[p], p % 2 == 0});
  AdamW adam(device, parameters, {.weight_decay = 0.1});
  const double norm = adam.gradient_norm();
  double squares = 0;
  for (const auto& g : gradient)
    for (const float x : g) squares += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-5);
  for (int t = 1; t <= 2; ++t) adam.step(t, 0.02f, 0.5f, norm);
  for (size_t p = 0; p < sizes.size(); ++p) {
    const TrainableTensor only{"p", expected[p], gradient[p], p % 2 == 0};
    AdamW one(alone, std::span(&only, 1), {.weight_decay = 0.1});
    for (int t = 1; t <= 2; ++t) one.step(t, 0.02f, 0.5f, norm);
    EXPECT_EQ(value[p], expected[p]) << "parameter " << p;
    EXPECT_TRUE(std::ranges::equal(adam.first_moment(p), one.first_moment(0)));
    EXPECT_TRUE(std::ranges::equal(adam.second_moment(p), one.second_moment(0)));
  }
}

}  // namespace
}  // namespace mw::engine
