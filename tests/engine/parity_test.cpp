// SPDX-License-Identifier: GPL-3.0-or-later
// Against transformers + peft + torch.optim (tests/fixtures/README.md): logits, losses, gradients, AdamW trajectories.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/base/json.h"
#include "core/engine/transformer/optimizer.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

namespace fs = std::filesystem;

struct Values {
  std::vector<float> data;
  std::vector<std::int64_t> shape;
};

Values read(const formats::SafetensorsFile& file, const std::string& name) {
  const formats::TensorInfo* info = file.find(name);
  if (!info) throw std::runtime_error("no tensor " + name + " in " + file.path().string());
  Values v{std::vector<float>(static_cast<size_t>(info->elements())), info->shape};
  file.read_f32(*info, 0, v.data);
  return v;
}

std::vector<int> flat(const Json& rows) {
  std::vector<int> out;
  for (const Json& row : rows)
    for (const Json& x : row) out.push_back(x.get<int>());
  return out;
}

// The largest difference over the largest value: what "within 1e-3 relative" means for a tensor of gradients.
double relative(std::span<const float> ours, std::span<const float> theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])));
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
  }
  return worst / largest;
}

std::string hf_name(const Network& n, const TrainableTensor& p) {
  for (const model::Tensor& t : n.inventory().tensors())
    if (t.name == p.name) return t.hf_name;
  return "no tensor " + p.name;
}

class Parity : public ::testing::TestWithParam<const char*> {
 protected:
  Parity()
      : folder_(fs::path(MW_FIXTURES) / GetParam()),
        config_(formats::read_config(folder_)),
        expected_(folder_ / "expected.safetensors") {
    const Json inputs = read_json(folder_ / "inputs.json");
    const Json& ids = inputs.at("input_ids");
    batch_ = {
        static_cast<int>(ids.size()), static_cast<int>(ids[0].size()), flat(ids), flat(inputs.at("targets")), {}, {}};
    for (const int real : flat(inputs.at("attention_mask"))) {
      batch_.positions.push_back(static_cast<int>(batch_.positions.size()) % batch_.len);
      batch_.segments.push_back(real == 1 ? 0 : -1);
    }
    const Json& packed = inputs.at("packed");
    packed_ = {1,
               static_cast<int>(packed.at("input_ids")[0].size()),
               flat(packed.at("input_ids")),
               {},
               flat(packed.at("positions")),
               flat(packed.at("segments"))};
    packed_.targets.assign(packed_.ids.size(), -1);
    loss_tokens_ = inputs.at("loss_tokens").get<std::int64_t>();
    step_.gradient_scale = 1.0f / static_cast<float>(loss_tokens_);
    step_.loss_chunk = 16;
  }

  std::unique_ptr<Network> network(model::WeightType type) {
    auto n = std::make_unique<Network>(config_, device_, type);
    const formats::HfWeights weights(folder_, n->inventory());
    n->load({.f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
             .bf16 = [&](size_t i, std::int64_t first,
                         std::span<std::uint16_t> out) { weights.read_bf16(i, first, out); }});
    return n;
  }

  void add_adapter(Network& n, const fs::path& folder, float plus_ratio = 1) {
    const formats::PeftAdapter a = formats::read_peft(folder, n.inventory());
    options::Lora options{a.rank, a.alpha, a.dropout, a.rslora, a.targets, a.rank_pattern, a.alpha_pattern};
    options.dora = a.dora;
    options.plus_ratio = plus_ratio;
    n.add_lora(options, 1);
    ASSERT_EQ(n.lora().size(), a.modules.size());
    for (const LoraTensors& ours : n.lora()) {
      const auto theirs = std::find_if(a.modules.begin(), a.modules.end(),
                                       [&](const auto& m) { return m.target.module == ours.target.module; });
      ASSERT_NE(theirs, a.modules.end()) << ours.target.module;
      ASSERT_EQ(theirs->a.size(), ours.a.size()) << ours.target.module;
      ASSERT_EQ(theirs->b.size(), ours.b.size()) << ours.target.module;
      std::copy(theirs->a.begin(), theirs->a.end(), ours.a.begin());
      std::copy(theirs->b.begin(), theirs->b.end(), ours.b.begin());
      ASSERT_EQ(theirs->m.size(), ours.m.size()) << ours.target.module;
      std::copy(theirs->m.begin(), theirs->m.end(), ours.m.begin());
    }
    n.parameters_changed();
  }

  double worst_logit(Network& n, const OwnedBatch& batch, const Values& expected) {
    std::vector<float> ours(expected.data.size());
    n.logits(batch, ours);
    double worst = 0;
    for (size_t i = 0; i < ours.size(); ++i)
      if (batch.segments[i / static_cast<size_t>(config_.vocab)] >= 0)
        worst = std::max(worst, static_cast<double>(std::abs(ours[i] - expected.data[i])));
    return worst;
  }

  double mean(const LossSum& loss) const {
    EXPECT_EQ(loss.tokens, loss_tokens_);
    return loss.sum / static_cast<double>(loss.tokens);
  }

  void expect_adapter_parity(const fs::path& folder) {
    const auto n = network(model::WeightType::f32);
    add_adapter(*n, folder);
    n->set_trainable(model::TrainMethod::lora);
    const formats::SafetensorsFile expected(folder / "expected.safetensors");
    EXPECT_LT(worst_logit(*n, batch_, read(expected, "logits")), 1e-4);
    EXPECT_NEAR(mean(n->forward_backward(batch_, step_)), read(expected, "loss").data[0], 2e-6);
    expect_gradients(*n, expected, 1e-3);
  }

  void expect_gradients(Network& n, const formats::SafetensorsFile& expected, double most) {
    auto parameter = n.parameters().begin();
    const auto expect_gradient = [&](const std::string& name) {
      EXPECT_LT(relative((parameter++)->grad, read(expected, "grad." + name).data), most) << name;
    };
    for (const LoraTensors& ours : n.lora()) {
      expect_gradient(ours.target.peft_a);
      expect_gradient(ours.target.peft_b);
      if (!ours.m.empty()) expect_gradient(formats::peft_magnitude(ours.target) + ".weight");
    }
  }

  // Repeats the reference's training and compares the whole trajectory.
  void expect_trajectory(Network& n, const fs::path& folder) {
    const Json steps = read_json(folder / "steps.json");
    AdamW adam(device_, n.parameters(),
               {steps.at("beta1").get<float>(), steps.at("beta2").get<float>(), steps.at("epsilon").get<float>(),
                steps.at("weight_decay").get<float>()});
    const auto losses = steps.at("losses").get<std::vector<double>>(),
               norms = steps.at("gradient_norms").get<std::vector<double>>();
    for (size_t t = 0; t < losses.size(); ++t) {
      n.zero_gradients();
      EXPECT_NEAR(mean(n.forward_backward(batch_, step_)), losses[t], 1e-4 * losses[t]) << "step " << t + 1;
      const double norm = adam.gradient_norm();
      EXPECT_NEAR(norm, norms[t], 1e-3 * norms[t]) << "step " << t + 1;
      adam.step(static_cast<std::int64_t>(t) + 1, steps.at("learning_rate").get<float>(), steps.at("clip").get<float>(),
                norm);
      n.parameters_changed();
    }
    EXPECT_NEAR(mean(n.evaluate(batch_, step_)), steps.at("loss_after").get<double>(), 1e-4);
  }

  fs::path folder_;
  model::Config config_;
  formats::SafetensorsFile expected_;
  Device device_{Bytes(0), 2};
  OwnedBatch batch_, packed_;
  std::int64_t loss_tokens_ = 0;
  StepOptions step_;
};

TEST_P(Parity, LogitsAndLossOfTransformers) {
  const auto n = network(model::WeightType::f32);
  EXPECT_LT(worst_logit(*n, batch_, read(expected_, "logits")), 1e-4);
  EXPECT_LT(worst_logit(*n, packed_, read(expected_, "packed_logits")), 1e-4);
  EXPECT_NEAR(mean(n->evaluate(batch_, step_)), read(expected_, "loss").data[0], 2e-6);
}

TEST_P(Parity, Bf16WeightsWithRoundedEmbeddingScale) {
  // The reference keeps f32 activations; packed kernels round them, which shows in the third digit of a logit.
  const auto n = network(model::WeightType::bf16);
  EXPECT_LT(worst_logit(*n, batch_, read(expected_, "bf16_weights.logits")),
            test::tolerance(model::WeightType::bf16, 1e-4f, 0.1f));
  EXPECT_NEAR(mean(n->evaluate(batch_, step_)), read(expected_, "bf16_weights.loss").data[0],
              test::tolerance(model::WeightType::bf16, 2e-6f, 5e-3f));
}

TEST_P(Parity, GradientsOfEveryWeight) {
  for (const model::Remat remat : {model::Remat::none, model::Remat::layer}) {
    const auto n = network(model::WeightType::f32);
    n->set_trainable(model::TrainMethod::full);
    step_.remat = remat;
    n->forward_backward(batch_, step_);
    for (const TrainableTensor& p : n->parameters()) {
      const std::string name = "grad." + hf_name(*n, p);
      EXPECT_LT(relative(p.grad, read(expected_, name).data), 1e-3) << name;
    }
  }
}

TEST_P(Parity, AdaptersOfPeft) {
  for (const char* name : {"lora", "lora_patterns", "lora_rslora"})
    if (fs::exists(folder_ / name)) expect_adapter_parity(folder_ / name);
}

TEST_P(Parity, TwentyStepsOfTorchAdamWOnAdapters) {
  const auto n = network(model::WeightType::f32);
  add_adapter(*n, folder_ / "lora");
  n->set_trainable(model::TrainMethod::lora);
  expect_trajectory(*n, folder_ / "adamw_lora");
  if (!fs::exists(folder_ / "adamw_lora" / "adapter_config.json")) return;  // kept for some fixtures only
  const formats::PeftAdapter after = formats::read_peft(folder_ / "adamw_lora", n->inventory());
  for (size_t i = 0; i < after.modules.size(); ++i) {
    ASSERT_EQ(after.modules[i].target.module, n->lora()[i].target.module);
    EXPECT_LT(relative(n->lora()[i].a, after.modules[i].a), 2e-3) << after.modules[i].target.module;
    EXPECT_LT(relative(n->lora()[i].b, after.modules[i].b), 2e-3) << after.modules[i].target.module;
  }
}

class SmoothedParity : public Parity {};  // with and without a final softcap

TEST_P(SmoothedParity, LossAndGradientsOfTransformersLabelSmoother) {
  const formats::SafetensorsFile expected(folder_ / "label_smoothing.safetensors");
  step_.label_smoothing = read(expected, "smoothing").data[0];
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
    const auto n = network(type);
    add_adapter(*n, folder_ / "lora");
    n->set_trainable(model::TrainMethod::lora);
    const bool exact = type == model::WeightType::f32;
    EXPECT_NEAR(mean(n->forward_backward(batch_, step_)), read(expected, "loss").data[0], exact ? 2e-6 : 1e-2);
    expect_gradients(*n, expected, exact ? 1e-3 : 0.1);
    EXPECT_NEAR(mean(n->evaluate(batch_, step_)), read(expected, "loss").data[0], exact ? 2e-6 : 1e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SmoothedParity, ::testing::Values("gemma2_tiny", "gemma3_tiny", "gemma4_tiny"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class DoraParity : public Parity {};  // the base of fixtures/dora_tiny

TEST_P(DoraParity, LogitsAndGradientsOfPeft) {
  for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer}) {
    step_.remat = remat;
    expect_adapter_parity(fs::path(MW_FIXTURES) / "dora_tiny");
  }
}

TEST_P(DoraParity, FiveStepsOfLoraPlus) {
  const auto n = network(model::WeightType::f32);
  const fs::path folder = fs::path(MW_FIXTURES) / "dora_tiny";
  add_adapter(*n, folder, read_json(folder / "steps.json").at("loraplus_lr_ratio").get<float>());
  n->set_trainable(model::TrainMethod::lora);
  expect_trajectory(*n, folder);
}

TEST_P(DoraParity, Bf16WeightsAreNearTheirF32Values) {
  const auto wide = network(model::WeightType::f32), narrow = network(model::WeightType::bf16);
  std::vector<std::vector<float>> gradients[2];
  for (Network* n : {wide.get(), narrow.get()}) {
    add_adapter(*n, fs::path(MW_FIXTURES) / "dora_tiny");
    n->set_trainable(model::TrainMethod::lora);
    n->forward_backward(batch_, step_);
    for (const TrainableTensor& p : n->parameters())
      gradients[n == narrow.get()].emplace_back(p.grad.begin(), p.grad.end());
  }
  for (size_t i = 0; i < gradients[0].size(); ++i)
    EXPECT_LT(relative(gradients[1][i], gradients[0][i]), 0.1) << wide->parameters()[i].name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DoraParity, ::testing::Values("gemma3_tiny_mha"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class FullParity : public Parity {};  // the fixture with every weight trained

TEST_P(FullParity, TwentyStepsOfTorchAdamWOnEveryWeight) {
  const auto n = network(model::WeightType::f32);
  n->set_trainable(model::TrainMethod::full);
  expect_trajectory(*n, folder_ / "adamw_full");
  const formats::SafetensorsFile final(folder_ / "adamw_full" / "final.safetensors");
  for (const TrainableTensor& p : n->parameters())
    EXPECT_LT(relative(p.value, read(final, hf_name(*n, p)).data), 2e-3) << p.name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Parity,
                         ::testing::Values("gemma2_tiny", "gemma3_tiny", "gemma3_tiny_gqa", "gemma3_tiny_mha",
                                           "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"),
                         [](const auto& fixture) { return std::string(fixture.param); });

INSTANTIATE_TEST_SUITE_P(Fixtures, FullParity, ::testing::Values("gemma3_tiny_mha"),
                         [](const auto& fixture) { return std::string(fixture.param); });

}  // namespace
}  // namespace mw::engine::test
