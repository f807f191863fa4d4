// SPDX-License-Identifier: GPL-3.0-or-later
// Files written by PyTorch, transformers and PEFT are read and written again to identical bytes.
#include <cmath>

#include "core/base/json.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/model/hf_config.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {

namespace fs = std::filesystem;
const fs::path kFixtures = MW_FIXTURES;

class HfFixture : public testing::TestWithParam<const char*> {
 protected:
  const fs::path folder = kFixtures / GetParam();
};

TEST_P(HfFixture, WritesIdenticalWeights) {
  const model::Config config = read_config(folder);
  EXPECT_EQ(config.id, GetParam());
  const model::TensorInventory inventory(config);
  const HfWeights weights(folder, inventory);
  EXPECT_THAT(weights.skipped(), testing::IsEmpty());
  const Scratch out;
  const auto read = [&](size_t i, std::span<float> values) { weights.read_f32(i, 0, values); };
  write_hf_weights(out.path(), config, inventory, read, TensorDType::f32);
  EXPECT_TRUE(get(out / "model.safetensors") == get(folder / "model.safetensors")) << "bytes differ";
  model::Config back = read_config(out.path());
  back.id = config.id;
  EXPECT_EQ(back, config);
}

TEST_P(HfFixture, WritesIdenticalAdapter) {
  const model::TensorInventory inventory(read_config(folder));
  const PeftAdapter adapter = read_peft(folder / "lora", inventory);
  EXPECT_EQ(adapter.rank, 4);
  EXPECT_EQ(adapter.alpha, 8.0f);
  EXPECT_EQ(adapter.targets.size(), 7u);
  EXPECT_EQ(adapter.modules.size(), inventory.lora_targets().size());
  const Scratch out;
  write_peft(out.path(), adapter, inventory);
  EXPECT_TRUE(get(out / "adapter_model.safetensors") == get(folder / "lora" / "adapter_model.safetensors"));
  // Every field we write is a field of peft's own file, with the same value.
  const Json ours = read_json(out / "adapter_config.json"), peft = read_json(folder / "lora" / "adapter_config.json");
  for (const auto& [key, value] : ours.items()) {
    ASSERT_TRUE(peft.contains(key)) << key;
    EXPECT_EQ(value, peft.at(key)) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HfFixture,
                         testing::Values("gemma2_tiny", "gemma3_tiny", "gemma3_tiny_gqa", "gemma3_tiny_mha",
                                         "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"),
                         [](const auto& p) { return std::string(p.param); });

TEST(HfFixtureConfig, OldKeysGiveSameModel) {
  const fs::path folder = kFixtures / "gemma3_tiny_gqa";
  const std::string old_style = (folder / "config_old_style.json").string();
  EXPECT_EQ(model::from_hf_config(read_json(old_style), old_style), read_config(folder));
}

class PeftFixture : public testing::TestWithParam<const char*> {};

// modules.json contains rank, alpha and scaling that PEFT derived from the patterns in the config.
TEST_P(PeftFixture, RanksAndAlphasMatchPeft) {
  const fs::path base = kFixtures / "gemma3_tiny_gqa", folder = base / GetParam();
  const model::TensorInventory inventory(read_config(base));
  const PeftAdapter adapter = read_peft(folder, inventory);
  const Json peft = read_json(folder / "modules.json");
  ASSERT_EQ(adapter.modules.size(), peft.size());
  for (const AdapterModule& m : adapter.modules) {
    const Json& expected = peft.at(m.target.module);
    EXPECT_EQ(m.rank, expected.at("r").get<int>()) << m.target.module;
    EXPECT_EQ(m.alpha, expected.at("alpha").get<float>()) << m.target.module;
    const double divisor = adapter.rslora ? std::sqrt(m.rank) : m.rank;
    EXPECT_NEAR(m.alpha / divisor, expected.at("scaling").get<double>(), 1e-6) << m.target.module;
  }
  const Scratch out;
  write_peft(out.path(), adapter, inventory);
  EXPECT_TRUE(get(out / "adapter_model.safetensors") == get(folder / "adapter_model.safetensors"));
  const Json ours = read_json(out / "adapter_config.json"), theirs = read_json(folder / "adapter_config.json");
  for (const char* key : {"rank_pattern", "alpha_pattern", "target_modules", "use_rslora", "r", "lora_alpha"})
    EXPECT_EQ(ours.at(key), theirs.at(key)) << key;
}

INSTANTIATE_TEST_SUITE_P(Gemma3, PeftFixture, testing::Values("lora", "lora_patterns", "lora_rslora"),
                         [](const auto& p) { return std::string(p.param); });

TEST(PeftFixtureDefaults, ReadsAdapterWithDefaultTargets) {
  const model::TensorInventory inventory(read_config(kFixtures / "gemma3_tiny"));
  const PeftAdapter adapter = read_peft(kFixtures / "peft_adapter", inventory);
  EXPECT_EQ(adapter.rank, 3);
  EXPECT_EQ(adapter.alpha, 12.0f);
  EXPECT_EQ(adapter.base_model, "gemma3_tiny");
  EXPECT_THAT(adapter.targets, testing::ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(adapter.modules.size(), 12u);
}

}  // namespace
}  // namespace mw::formats
