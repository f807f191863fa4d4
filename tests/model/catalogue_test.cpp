// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/catalogue.h"
#include "core/model/config.h"
#include "core/model/inventory.h"

namespace mw::model {
namespace {

// Expected values, computed from the published shapes independently of this code.
struct Expected {
  const char* id;
  std::int64_t parameters, embedding, ple_table, lora_per_rank;
};
void PrintTo(const Expected& e, std::ostream* os) {
  *os << e.id;
}

class Model : public testing::TestWithParam<Expected> {};

TEST_P(Model, CountsEqualReference) {
  const Expected& e = GetParam();
  const TensorInventory inventory(catalogue_config(e.id));
  EXPECT_EQ(inventory.parameters(), e.parameters);
  EXPECT_EQ(inventory.find(Role::embed)->elements(), e.embedding);
  const Tensor* table = inventory.find(Role::ple_embed);
  EXPECT_EQ(table ? table->elements() : 0, e.ple_table);
  std::int64_t lora = 0;
  for (const LoraTarget& t : inventory.lora_targets()) lora += t.in + t.out;
  EXPECT_EQ(lora, e.lora_per_rank);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Model,
                         testing::Values(Expected{"gemma2-2b", 2'614'341'888, 589'824'000, 0, 1'297'920},
                                         Expected{"gemma2-9b", 9'241'705'984, 917'504'000, 0, 3'376'128},
                                         Expected{"gemma2-27b", 27'227'128'320, 1'179'648'000, 0, 7'136'256},
                                         Expected{"gemma3-270m", 268'098'176, 167'772'160, 0, 237'312},
                                         Expected{"gemma3-1b", 999'885'952, 301'989'888, 0, 815'360},
                                         Expected{"gemma3-4b", 3'880'263'168, 671'252'480, 0, 1'862'656},
                                         Expected{"gemma3-12b", 11'766'034'176, 1'006'878'720, 0, 4'091'904},
                                         Expected{"gemma3-27b", 27'009'346'304, 1'409'630'208, 0, 7'094'784},
                                         Expected{"gemma4-e2b", 4'628'569'344, 402'653'184, 2'348'810'240, 1'509'888},
                                         Expected{"gemma4-e4b", 7'463'013'376, 671'088'640, 2'818'572'288, 2'180'096},
                                         Expected{"gemma4-12b", 11'907'350'272, 1'006'632'960, 0, 4'098'048},
                                         Expected{"gemma4-26b-a4b", 25'233'141'760, 738'197'504, 0, 1'161'600},
                                         Expected{"gemma4-31b", 30'697'345'280, 1'409'286'144, 0, 7'651'840}),
                         [](const auto& p) {
                           std::string name = p.param.id;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Catalogue, ListsIdsInOrder) {
  EXPECT_THAT(catalogue_ids(),
              testing::ElementsAre("gemma2-2b", "gemma2-9b", "gemma2-27b", "gemma3-270m", "gemma3-1b", "gemma3-4b",
                                   "gemma3-12b", "gemma3-27b", "gemma4-e2b", "gemma4-e4b", "gemma4-12b",
                                   "gemma4-26b-a4b", "gemma4-31b", "llama2-7b", "llama2-13b", "llama2-70b",
                                   "llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "llama3.2-1b", "llama3.2-3b",
                                   "llama3.3-70b", "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b",
                                   "qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b", "mistral-7b-v0.1",
                                   "mistral-7b-v0.3", "gemma1-2b", "gemma1-7b", "gemma3n-e2b", "gemma3n-e4b"));
  for (const std::string& id : catalogue_ids()) EXPECT_EQ(catalogue_config(id).id, id);
}

TEST(Catalogue, SuggestsNearestIdsForUnknownOne) {
  try {
    catalogue_config("gemma3-28b");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::bad_input);
    EXPECT_EQ(e.problem().found, "gemma3-28b");
    EXPECT_THAT(e.problem().expected, testing::HasSubstr("gemma3-27b"));
  }
  EXPECT_THROW(catalogue_config(std::string(1 << 20, 'x')), Error);
}

std::vector<int> global_layers(const Config& c) {
  std::vector<int> out;
  for (size_t i = 0; i < c.layers.size(); ++i)
    if (c.layers[i].attention == Attention::full) out.push_back(static_cast<int>(i));
  return out;
}

TEST(Catalogue, PlacesGlobalLayers) {
  EXPECT_THAT(global_layers(catalogue_config("gemma3-270m")), testing::ElementsAre(5, 11, 17));
  EXPECT_THAT(global_layers(catalogue_config("gemma3-1b")), testing::ElementsAre(5, 11, 17, 23));
  EXPECT_THAT(global_layers(catalogue_config("gemma4-e2b")), testing::ElementsAre(4, 9, 14, 19, 24, 29, 34));
  EXPECT_THAT(global_layers(catalogue_config("gemma4-26b-a4b")), testing::ElementsAre(5, 11, 17, 23, 29));
  const auto g2 = global_layers(catalogue_config("gemma2-2b"));
  ASSERT_EQ(g2.size(), 13u);
  EXPECT_EQ(g2.front(), 1);
  EXPECT_EQ(g2.back(), 25);
}

TEST(Catalogue, SharedKvLayersNameTheirDonors) {
  const Config e2b = catalogue_config("gemma4-e2b"), e4b = catalogue_config("gemma4-e4b");
  for (int i = 0; i < 35; ++i) {
    const Layer& l = e2b.layers[static_cast<size_t>(i)];
    EXPECT_EQ(l.has_k, i < 15);
    EXPECT_EQ(l.mlp_dim, i < 15 ? 6144 : 12288);
    EXPECT_EQ(l.kv_donor, i < 15 ? -1 : l.attention == Attention::full ? 14 : 13);
  }
  for (int i = 24; i < 42; ++i) {
    const Layer& l = e4b.layers[static_cast<size_t>(i)];
    EXPECT_EQ(l.kv_donor, l.attention == Attention::full ? 23 : 22);
    EXPECT_EQ(l.mlp_dim, 10240);
  }
}

TEST(Catalogue, HasSpecialValuesOfEachFamily) {
  EXPECT_EQ(catalogue_config("gemma2-27b").attention_scale, static_cast<float>(1.0 / 12.0));
  EXPECT_FLOAT_EQ(catalogue_config("gemma3-27b").attention_scale, 0.0771516750f);  // 168^-0.5
  EXPECT_EQ(catalogue_config("gemma4-31b").attention_scale, 1.0f);
  EXPECT_EQ(catalogue_config("gemma4-31b").norm_form, NormForm::plain_w);
  EXPECT_EQ(catalogue_config("gemma3-1b").layers[5].rope, Rope::plain);
  EXPECT_EQ(catalogue_config("gemma3-4b").layers[5].rope, Rope::linear);
  EXPECT_EQ(catalogue_config("gemma3-4b").layers[5].rope_factor, 8.0f);
  EXPECT_EQ(catalogue_config("gemma3-4b").layers[0].rope, Rope::plain);
  EXPECT_EQ(catalogue_config("gemma3-4b").layers[0].rope_theta, 10000.0f);
  EXPECT_EQ(catalogue_config("gemma4-12b").layers[5].kv_heads, 1);
  EXPECT_EQ(catalogue_config("gemma4-12b").layers[5].rope_factor, 0.25f);
  EXPECT_FALSE(catalogue_config("gemma4-12b").layers[5].has_v);
  EXPECT_TRUE(catalogue_config("gemma4-12b").layers[4].has_v);
  EXPECT_EQ(catalogue_config("gemma2-9b").layers[0].mlp_dim, 14336);
  EXPECT_EQ(catalogue_config("gemma3-12b").final_softcap, 0.0f);
}

}  // namespace
}  // namespace mw::model
