// SPDX-License-Identifier: GPL-3.0-or-later
// Compares a model run layer by layer from its files with the same model in memory.
#include "core/train/sliced_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/base/rng.h"
#include "core/engine/distributed/cluster.h"
#include "core/model/catalogue.h"
#include "core/train/merge.h"
#include "core/train/model.h"
#include "tests/formats/test_files.h"
#include "tests/train/merge_folder.h"
#include "tests/train/random_model.h"

namespace mw::train {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 2, kLen = 11;

struct Text {
  std::vector<int> ids, targets, positions, segments;
  explicit Text(int vocab) {
    Rng rng{9};
    for (int i = 0; i < kRows * kLen; ++i) {
      ids.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab))));
      targets.push_back(-1), positions.push_back(i % kLen), segments.push_back(0);
    }
  }
  engine::TokenBatch batch() const { return {kRows, kLen, ids, targets, positions, segments}; }
};

class SlicedModelTest : public testing::TestWithParam<const char*> {
 protected:
  // Writes weights to files and loads them in memory, with an adapter that differs between layers.
  void SetUp() override {
    settings_.path = test::random_model(GetParam(), folder_ / "base");
    settings_.weights = model::WeightType::f32;
    settings_.init = options::Init::random;
    settings_.seed = 3;
    config_ = formats::read_config(settings_.path);
    LoadedModel random = load_weights(settings_, config_);
    engine::Network& network = random.cluster->network(0);
    formats::write_hf_weights(
        settings_.path, config_, network.inventory(),
        [&](size_t i, std::span<float> out) {
          const auto from = network.weight_f32(i);
          std::copy(from.begin(), from.end(), out.begin());
          Rng rng{i};
          if (network.inventory().tensors()[i].layer >= 0)  // norms differ from layer to layer
            for (float& value : out) value += 0.05f * (static_cast<float>(rng.next_uniform()) - 0.5f);
        },
        formats::TensorDType::f32);
    adapter_ = {.rank = 4, .alpha = 8, .targets = {"q_proj", "o_proj", "gate_proj"}};
    adapter_.rank_pattern = {{"layers.1.self_attn.q_proj", 2}};
    adapter_.alpha_pattern = {{"layers.2.self_attn.o_proj", 20.0f}};
    Rng rng{4};
    for (const engine::ResolvedLora& r : engine::resolve_lora(network.inventory(), lora_options(adapter_))) {
      formats::AdapterModule m{.target = r.target, .rank = r.rank, .alpha = r.alpha, .a = {}, .b = {}};
      m.a.resize(static_cast<size_t>(r.rank * r.target.in)), m.b.resize(static_cast<size_t>(r.rank * r.target.out));
      for (std::vector<float>* values : {&m.a, &m.b})
        for (float& value : *values) value = 0.4f * (static_cast<float>(rng.next_uniform()) - 0.5f);
      adapter_.modules.push_back(std::move(m));
    }
  }
  std::vector<float> whole(const formats::PeftAdapter* adapter) {
    settings_.init = options::Init::load;
    settings_.use = engine::NetworkUse::inference;
    LoadedModel model = load_weights(settings_, config_);
    if (adapter) attach_adapter(*adapter, 0, *model.cluster);
    std::vector<float> out(static_cast<size_t>(kRows * kLen * config_.vocab));
    model.cluster->network(0).logits(text().batch(), out);
    return out;
  }
  Text text() const { return Text(config_.vocab); }

  formats::Scratch folder_;
  ModelSettings settings_;
  model::Config config_;
  formats::PeftAdapter adapter_;
};

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

TEST_P(SlicedModelTest, LogitsEqualWholeModelWithAndWithoutAdapter) {
  ASSERT_TRUE(SlicedModel::possible(config_));
  const Text t = text();
  const std::vector<float> base = whole(nullptr), tuned = whole(&adapter_);
  EXPECT_GT(farthest(base, tuned), 1e-2) << "an adapter that changes nothing shows nothing";
  // Pieces of 100 rows: the last one is shorter.
  const Bytes piece(100 * std::int64_t{config_.dim} * 4);
  EXPECT_LT(farthest(SlicedModel(settings_.path, nullptr, 2, piece).logits(t.batch()), base), 2e-5);
  EXPECT_LT(farthest(SlicedModel(settings_.path, &adapter_, 1, piece).logits(t.batch()), tuned), 2e-5);
  EXPECT_LT(farthest(SlicedModel(settings_.path, &adapter_, 2).logits(t.batch()), tuned), 2e-5);
}

// The magnitudes of the adapter beside the weights, and of none beside merged ones.
TEST_P(SlicedModelTest, MergedWeightsEqualDoraBesideThem) {
  adapter_.dora = true;
  Rng rng{5};
  for (formats::AdapterModule& m : adapter_.modules)
    for (std::int64_t i = 0; i < m.target.out; ++i) m.m.push_back(0.2f + 0.3f * static_cast<float>(rng.next_uniform()));
  const Text t = text();
  const std::vector<float> tuned = whole(&adapter_);
  EXPECT_GT(farthest(whole(nullptr), tuned), 1e-2);
  const auto both =
      SlicedModel(settings_.path, &adapter_, 2).logits(t.batch(), std::array{AdapterUse::beside, AdapterUse::folded});
  EXPECT_LT(farthest(both[0], tuned), 2e-5);
  EXPECT_LT(farthest(both[1], tuned), 2e-4);
  const MergedFiles merged = merge(settings_.path, adapter_, folder_ / "merged", 2);
  EXPECT_EQ(merged.merged, static_cast<long>(adapter_.modules.size()));
  EXPECT_LT(farthest(SlicedModel(folder_ / "merged", nullptr, 2).logits(t.batch()), tuned), 2e-4);
  const MergeCheck check = check_weights(settings_.path, adapter_, folder_ / "merged", 2);
  EXPECT_EQ(check.verdict, ParityVerdict::passed) << check.reason;
  EXPECT_GT(check.effect_rms, 1e-3);
  formats::PeftAdapter other = adapter_;
  other.modules.back().m.back() *= 1.01f;
  EXPECT_EQ(check_weights(settings_.path, other, folder_ / "merged", 2).verdict, ParityVerdict::failed);
}

INSTANTIATE_TEST_SUITE_P(Families, SlicedModelTest, testing::Values("gemma2", "gemma3", "gemma4", "gemma4_moe"),
                         [](const auto& p) { return std::string(p.param); });

TEST(SlicedModel, IsNotPossibleWithSharedKv) {
  formats::Scratch folder;
  EXPECT_FALSE(SlicedModel::possible(formats::read_config(test::random_model("gemma4_e", folder / "e"))));
}

// An 8 GB model needs a few hundred MB.
TEST(SlicedModel, MemoryCoversOneLayerAndPieceOfHead) {
  const model::Config config = model::catalogue_config("gemma3-4b");
  const std::int64_t whole = 4 * model::TensorInventory(config).parameters();
  EXPECT_LT(SlicedModel::memory(config).value, whole / 12);
  EXPECT_LT(SlicedModel::memory(config).value, 1'200'000'000);
}

}  // namespace
}  // namespace mw::train
