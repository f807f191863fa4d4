// SPDX-License-Identifier: Apache-2.0
#include "core/lint/lora_modules.h"

#include <gmock/gmock.h>

#include <numeric>

#include "core/base/error.h"
#include "core/model/catalogue.h"

namespace mw::lint {
namespace {

using model::Role;
using testing::ElementsAre;

constexpr const char* kTunixDefault = ".*q_einsum|.*kv_einsum|.*gate_proj|.*down_proj|.*up_proj";
constexpr const char* kPaper = ".*q_einsum|.*kv_einsum|.*gate_proj|.*down_proj|.*up_proj|.*attn_vec_einsum";
const std::vector<Role> kAll{Role::q_proj,    Role::k_proj,  Role::v_proj,   Role::o_proj,
                             Role::gate_proj, Role::up_proj, Role::down_proj};

std::int64_t per_rank(const char* id, const std::string& pattern) {
  const model::TensorInventory inventory(model::catalogue_config(id));
  const auto modules = matching_modules(lora_modules(inventory, ModuleNaming::qwix), pattern);
  return std::accumulate(modules.begin(), modules.end(), std::int64_t{0},
                         [](std::int64_t n, const LoraModule& m) { return n + m.parameters_per_rank; });
}

// Parameters per unit of rank, computed from the shapes of Tunix's models.
TEST(LoraModules, ExpressionsAdaptAsManyParametersAsTunixDoes) {
  EXPECT_EQ(per_rank("gemma2-2b", kTunixDefault), 1124864);
  EXPECT_EQ(per_rank("gemma2-27b", kPaper), 6924288);
  EXPECT_EQ(per_rank("gemma3-1b", kTunixDefault), 728832);
  EXPECT_EQ(per_rank("gemma3-27b", kPaper), 6761472);
  EXPECT_EQ(per_rank("gemma4-e2b", kTunixDefault), 1347072);
  EXPECT_EQ(per_rank("gemma4-e4b", kPaper), 2118656);
  EXPECT_EQ(per_rank("gemma4-12b", kTunixDefault), 3495936);
  EXPECT_EQ(per_rank("gemma4-26b-a4b", kPaper), 1072000);
  EXPECT_EQ(per_rank("gemma4-31b", kTunixDefault), 6412800);
  EXPECT_EQ(per_rank("gemma4-31b", kPaper), 7308800);
}

// Gemma 4 31B in arXiv 2605.25645: rank 64 with the paper's expression, and with what it misses.
TEST(LoraModules, GeneratedExpressionMatchesAllTargets) {
  const model::TensorInventory inventory(model::catalogue_config("gemma4-31b"));
  EXPECT_EQ(64 * per_rank("gemma4-31b", kPaper), 467763200);
  EXPECT_EQ(64 * per_rank("gemma4-31b", lora_pattern(inventory, kAll, ModuleNaming::qwix)), 472514560);
}

TEST(LoraModules, NamesPathsAsEachLibraryDoes) {
  const model::TensorInventory inventory(model::catalogue_config("gemma4-31b"));
  const auto qwix = lora_modules(inventory, ModuleNaming::qwix);
  EXPECT_EQ(qwix[0].path, "layers/0/attn/q_einsum");
  EXPECT_EQ(qwix[1].path, "layers/0/attn/kv_einsum");
  EXPECT_THAT(qwix[1].roles, ElementsAre(Role::k_proj, Role::v_proj));
  EXPECT_EQ(last_component(qwix[1].path), "kv_einsum");
  const auto peft = lora_modules(inventory, ModuleNaming::peft);
  EXPECT_EQ(peft[0].path, "model.language_model.layers.0.self_attn.q_proj");
  EXPECT_EQ(lora_pattern(inventory, {Role::q_proj, Role::v_proj}, ModuleNaming::peft),
            R"(.*language_model\..*\.(q_proj|v_proj))");
  EXPECT_EQ(matching_modules(peft, lora_pattern(inventory, {Role::q_proj}, ModuleNaming::peft)).size(), 60U);
  EXPECT_EQ(lora_pattern(inventory, {Role::v_proj, Role::o_proj}, ModuleNaming::qwix), ".*kv_einsum|.*attn_vec_einsum");
}

TEST(LoraModules, SplitsTopLevelAlternatives) {
  EXPECT_THAT(split_alternatives("a|(b|c)|[|]d|e\\|f"), ElementsAre("a", "(b|c)", "[|]d", "e\\|f"));
  EXPECT_THAT(split_alternatives(""), ElementsAre(""));
}

}  // namespace
}  // namespace mw::lint
