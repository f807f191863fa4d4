// SPDX-License-Identifier: Apache-2.0
// The columns of the parameter table: names in other programs, readers, recipes and what tells runs apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/experiment/experiment.h"
#include "core/experiment/parameters.h"

namespace mw::experiment {
namespace {

using testing::HasSubstr;

TEST(ColumnsTest, NameOfAnotherProgramBelongsToOneSetting) {
  for (const auto& [program, name_of] : std::initializer_list<std::pair<const char*, std::string_view PeerNames::*>>{
           {"TRL", &PeerNames::trl},
           {"axolotl", &PeerNames::axolotl},
           {"LLaMA-Factory", &PeerNames::llama_factory},
           {"torchtune", &PeerNames::torchtune}}) {
    std::set<std::string_view> seen;
    for (const Parameter& p : parameters())
      if (const std::string_view name = p.columns.names.*name_of; !name.empty()) {
        EXPECT_TRUE(seen.insert(name).second) << program << ": " << name << " is also " << p.key;
      }
    EXPECT_GT(seen.size(), 10u) << program;
  }
}

TEST(ColumnsTest, UnknownKeySuggestsTheSettingThatAnotherProgramCallsSo) {
  EXPECT_EQ(nearest_key("max_grad_norm"), "train.clip");
  EXPECT_EQ(nearest_key("lora_r"), "lora.rank");
  EXPECT_EQ(nearest_key("--max-num-seqs"), "serve.max_num_seqs");
  EXPECT_EQ(nearest_key("train.max_grad_norm"), "train.clip");
  EXPECT_EQ(nearest_key("warmup_steps"), "train.warmup_steps");
  EXPECT_EQ(nearest_key("--max-num-batched-tokens"), "serve.max_num_batched_tokens");
  EXPECT_EQ(nearest_key("label_smoothing"), "train.label_smoothing");
  EXPECT_EQ(find_peer_name("nothing_like_it"), nullptr);
  Experiment e;
  try {
    e.set("loraplus_lr_ratio", "16");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(to_text(error.problem()), HasSubstr("lora.plus_ratio"));
  }
}

TEST(ColumnsTest, EveryRowHasReadersAndNoTwoAreEquallyTelling) {
  std::set<int> ranks;
  for (const Parameter& p : parameters()) {
    ASSERT_TRUE(p.columns.readers) << p.key;
    EXPECT_NE(p.columns.readers->here | p.columns.readers->planned, kNoKind) << p.key << " concerns no experiment";
    if (p.columns.telling > 0) {
      EXPECT_TRUE(ranks.insert(p.columns.telling).second) << p.key;
    }
  }
}

TEST(ColumnsTest, SettingThatARecipeDoesNotApplySaysWhy) {
  for (const Parameter& p : parameters())
    for (const model::Stack stack : {model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp})
      if (p.columns.recipes.of(stack) != RecipeEffect::applied) {
        EXPECT_FALSE(p.columns.recipes.reason.empty()) << p.key;
      }
}

TEST(ColumnsTest, OptionOfSomeSoftwareIsHiddenWhereItIsNotOffered) {
  Experiment e;
  e.set("target.id", "2xh100");
  e.set("train.stack", "torchtune");
  const Parameter& saved = *find_parameter("train.saved");
  EXPECT_FALSE(relevance(e, Kind::train).concerns(saved));
  e.set("train.stack", "torchtitan");
  EXPECT_TRUE(relevance(e, Kind::train).concerns(saved));
}

}  // namespace
}  // namespace mw::experiment
