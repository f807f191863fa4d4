// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients against central differences: along the gradient of each tensor and along a random direction, where the loss
// difference is far above f32 rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

StepOptions options_with(float dropout_seed = 0) {
  StepOptions o;
  o.loss_chunk = 7;
  o.dropout_seed = static_cast<std::uint64_t>(dropout_seed);
  return o;
}

// d loss / d epsilon along `direction`, Richardson-extrapolated central differences of the double loss.
double directional(Network& network, const OwnedBatch& batch, const StepOptions& options, const TrainableTensor& p,
                   std::span<const double> direction, double step) {
  const std::vector<float> saved(p.value.begin(), p.value.end());
  std::vector<float> gradients;  // forward_backward adds; keep what was there
  for (const TrainableTensor& q : network.parameters()) gradients.insert(gradients.end(), q.grad.begin(), q.grad.end());
  const auto loss_at = [&](double epsilon) {
    for (size_t i = 0; i < saved.size(); ++i) p.value[i] = static_cast<float>(saved[i] + epsilon * direction[i]);
    network.parameters_changed();
    return network.forward_backward(batch, options).sum;
  };
  const auto central = [&](double h) { return (loss_at(h) - loss_at(-h)) / (2 * h); };
  const double coarse = central(2 * step), fine = central(step);
  std::copy(saved.begin(), saved.end(), p.value.begin());
  network.parameters_changed();
  size_t at = 0;
  for (const TrainableTensor& q : network.parameters())
    for (float& g : q.grad) g = gradients[at++];
  return (4 * fine - coarse) / 3;
}

void expect_gradients_match(Network& network, const OwnedBatch& batch, const StepOptions& options) {
  network.zero_gradients();
  network.forward_backward(batch, options);
  std::uint64_t index = 0;
  for (const TrainableTensor& p : network.parameters()) {
    const Rng rng{77, index++};
    double norm = 0;
    for (const float g : p.grad) norm += static_cast<double>(g) * g;
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 1e-4) << p.name << " has no gradient";
    for (const bool along_gradient : {true, false}) {
      std::vector<double> direction(p.grad.size());
      double length = 0;
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] = along_gradient ? p.grad[i] : static_cast<double>(rng.normal_at(i));
        length += direction[i] * direction[i];
      }
      double expected = 0;
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] /= std::sqrt(length);
        expected += direction[i] * static_cast<double>(p.grad[i]);
      }
      const double measured = directional(network, batch, options, p, direction, 4e-3);
      EXPECT_NEAR(measured, expected, 1.5e-3 * norm + 2e-3)
          << p.name << (along_gradient ? " along its gradient" : " along a random direction");
    }
  }
}

class GradientsOf : public ::testing::TestWithParam<std::string> {
 protected:
  GradientsOf() : config(as_family(tiny_config(), GetParam())) {
    config.experts_per_token = config.experts;  // a difference must not change who is chosen
  }
  model::Config config;
};
INSTANTIATE_TEST_SUITE_P(Families, GradientsOf, ::testing::ValuesIn(families()), family_name);

TEST_P(GradientsOf, LoraOfEveryProjectionMatchFiniteDifferences) {
  Device device(Bytes(0), 1);
  Network network(config, device, model::WeightType::f32);
  fill(network, 3);
  network.add_lora(all_projections(), 5);
  randomise_adapters(network, 6);
  network.set_trainable(model::TrainMethod::lora);
  ASSERT_EQ(network.parameters().size(), 2 * network.inventory().lora_targets().size());
  expect_gradients_match(network, packed_batch(3, 14, 61), options_with());
}

TEST(Gradients, LoraWithDropoutMatchesFiniteDifferencesOfTheSameMask) {
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);
  fill(network, 3);
  network.add_lora(all_projections(3, 0.3f), 5);
  randomise_adapters(network, 6);
  network.set_trainable(model::TrainMethod::lora);
  expect_gradients_match(network, packed_batch(2, 14, 61), options_with(9));
}

TEST_P(GradientsOf, FullTrainingMatchFiniteDifferences) {
  Device device(Bytes(0), 1);
  Network network(config, device, model::WeightType::f32);
  fill(network, 4);
  network.set_trainable(model::TrainMethod::full);
  const auto tensors = network.inventory().tensors();
  const auto buffers = std::count_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.is_buffer; });
  ASSERT_EQ(network.parameters().size() + static_cast<size_t>(buffers), tensors.size());
  expect_gradients_match(network, packed_batch(3, 14, 61), options_with());
}

TEST(Gradients, ScaleAndAccumulateOverMicroBatches) {
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);
  fill(network, 4);
  network.add_lora(all_projections(), 5);
  randomise_adapters(network, 6);
  network.set_trainable(model::TrainMethod::lora);
  const OwnedBatch one = packed_batch(2, 14, 61, 1), two = packed_batch(2, 14, 61, 2);
  StepOptions o;
  const LossSum a = network.forward_backward(one, o);
  const std::vector<float> first = all_gradients(network);
  network.zero_gradients();
  network.forward_backward(two, o);
  const std::vector<float> second = all_gradients(network);
  network.zero_gradients();
  o.gradient_scale = 0.5f;
  const LossSum b = network.forward_backward(one, o);
  network.forward_backward(two, o);
  const std::vector<float> both = all_gradients(network);
  EXPECT_EQ(a.sum, b.sum) << "the returned loss is unscaled";
  for (size_t i = 0; i < both.size(); ++i)
    EXPECT_NEAR(both[i], 0.5f * (first[i] + second[i]), 1e-4f * (1 + std::abs(both[i])));
}

}  // namespace
}  // namespace mw::engine::test
