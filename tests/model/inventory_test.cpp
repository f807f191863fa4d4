// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/inventory.h"
#include "core/model/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace mw::model {
namespace {

class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, HasUniqueNamesEverywhere) {
  const TensorInventory inventory(catalogue_config(GetParam()));
  std::set<std::string> logical, hf, peft, modules;
  std::map<std::string, std::set<int>> tunix;  // path -> slots
  for (const Tensor& t : inventory.tensors()) {
    EXPECT_TRUE(logical.insert(t.name).second) << t.name;
    EXPECT_TRUE(hf.insert(t.hf_name).second) << t.hf_name;
    EXPECT_TRUE(tunix[t.tunix_path].insert(t.tunix_slot).second) << t.tunix_path << " slot " << t.tunix_slot;
  }
  for (const auto& [path, slots] : tunix) {
    const bool whole = slots == std::set<int>{-1}, pair = slots == std::set<int>{0, 1};
    EXPECT_TRUE(whole || pair) << path;
    EXPECT_EQ(pair, path.ends_with("kv_einsum.w")) << path;
  }
  for (const LoraTarget& t : inventory.lora_targets()) {
    EXPECT_TRUE(modules.insert(t.module).second) << t.module;
    EXPECT_TRUE(peft.insert(t.peft_a).second && peft.insert(t.peft_b).second) << t.module;
    EXPECT_TRUE(hf.contains(t.module + ".weight")) << t.module;
  }
}

TEST_P(EveryModel, ShapesAgreeAcrossFormats) {
  const TensorInventory inventory(catalogue_config(GetParam()));
  for (const Tensor& t : inventory.tensors()) {
    std::int64_t product = 1;
    for (const Dim& d : t.dims) product *= d.size;
    EXPECT_EQ(product, t.elements()) << t.name;
    EXPECT_GT(product, 0) << t.name;
    EXPECT_EQ(inventory.find(t.role, t.layer), &t);
  }
  for (const LoraTarget& t : inventory.lora_targets()) {
    const Tensor* base = inventory.find(t.role, t.layer);
    ASSERT_NE(base, nullptr);
    EXPECT_EQ(base->hf_shape, (std::vector<std::int64_t>{t.out, t.in})) << t.module;
  }
}

TEST_P(EveryModel, ListsLoraTargetsInLayerOrder) {
  const TensorInventory inventory(catalogue_config(GetParam()));
  const auto targets = inventory.lora_targets();
  EXPECT_TRUE(std::is_sorted(targets.begin(), targets.end(), [](const auto& a, const auto& b) {
    return a.layer != b.layer ? a.layer < b.layer : a.role < b.role;
  }));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryModel, testing::ValuesIn(catalogue_ids()), [](const auto& p) {
  std::string name = p.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(Inventory, NamesOfATextOnlyModel) {
  const TensorInventory inventory(catalogue_config("gemma3-1b"));
  const Tensor& q = *inventory.find(Role::q_proj, 3);
  EXPECT_EQ(q.name, "layers.3.q_proj");
  EXPECT_EQ(q.hf_name, "model.layers.3.self_attn.q_proj.weight");
  EXPECT_EQ(q.tunix_path, "layers.3.attn.q_einsum.w");
  EXPECT_EQ(q.dims, (std::vector<Dim>{{Axis::heads, 4}, {Axis::embed, 1152}, {Axis::head_dim, 256}}));
  EXPECT_EQ(inventory.find(Role::v_proj, 3)->tunix_path, "layers.3.attn.kv_einsum.w");
  EXPECT_EQ(inventory.find(Role::v_proj, 3)->tunix_slot, 1);
  EXPECT_EQ(inventory.find(Role::o_proj, 3)->tunix_path, "layers.3.attn.attn_vec_einsum.w");
  EXPECT_EQ(inventory.find(Role::embed)->hf_name, "model.embed_tokens.weight");
  EXPECT_EQ(inventory.find(Role::final_norm)->tunix_path, "final_norm.scale");
  EXPECT_EQ(inventory.find(Role::post_attention_norm, 0)->tunix_path, "layers.0.post_attention_norm.scale");
  EXPECT_EQ(inventory.lora_targets()[0].peft_a, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(inventory.lora_targets()[6].peft_b, "base_model.model.model.layers.0.mlp.down_proj.lora_B.weight");
}

TEST(Inventory, NamesHavePrefixOfConfig) {
  EXPECT_EQ(TensorInventory(catalogue_config("gemma3-4b")).find(Role::embed)->hf_name,
            "language_model.model.embed_tokens.weight");
  EXPECT_EQ(TensorInventory(catalogue_config("gemma4-31b")).lora_targets()[0].peft_a,
            "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(TensorInventory(catalogue_config("gemma2-2b")).find(Role::post_attention_norm, 1)->tunix_path,
            "layers.1.post_attn_norm.scale");
}

TEST(Inventory, GlobalLayersOf31BHaveNoV) {
  const TensorInventory inventory(catalogue_config("gemma4-31b"));
  EXPECT_EQ(inventory.find(Role::v_proj, 5), nullptr);
  const Tensor& k = *inventory.find(Role::k_proj, 5);
  EXPECT_EQ(k.hf_shape, (std::vector<std::int64_t>{2048, 5376}));
  EXPECT_EQ(k.tunix_path, "layers.5.attn.k_einsum.w");
  EXPECT_EQ(k.tunix_slot, -1);
  EXPECT_EQ(inventory.find(Role::q_proj, 5)->hf_shape, (std::vector<std::int64_t>{16384, 5376}));
  EXPECT_EQ(inventory.find(Role::o_proj, 5)->hf_shape, (std::vector<std::int64_t>{5376, 16384}));
  EXPECT_EQ(inventory.find(Role::k_norm, 5)->hf_shape, (std::vector<std::int64_t>{512}));
  EXPECT_EQ(inventory.find(Role::v_proj, 4)->hf_shape, (std::vector<std::int64_t>{4096, 5376}));
  EXPECT_EQ(inventory.find(Role::k_proj, 4)->tunix_slot, 0);
  EXPECT_TRUE(inventory.find(Role::layer_scalar, 5)->is_buffer);
}

TEST(Inventory, SharedKvLayersOfE2BHaveNeitherKNorV) {
  const TensorInventory inventory(catalogue_config("gemma4-e2b"));
  for (const Role role : {Role::k_proj, Role::v_proj, Role::k_norm}) {
    EXPECT_NE(inventory.find(role, 14), nullptr);
    EXPECT_EQ(inventory.find(role, 15), nullptr);
  }
  EXPECT_NE(inventory.find(Role::q_norm, 15), nullptr);
  EXPECT_EQ(inventory.find(Role::gate_proj, 15)->hf_shape, (std::vector<std::int64_t>{12288, 1536}));
  EXPECT_EQ(inventory.find(Role::ple_model_proj)->hf_shape, (std::vector<std::int64_t>{35 * 256, 1536}));
  EXPECT_EQ(inventory.find(Role::ple_gate, 0)->hf_name, "model.language_model.layers.0.per_layer_input_gate.weight");
}

// K, V and k_norm of layers that share K and V: unused tensors in the files of E2B and E4B on the hub.
TEST(Inventory, FilesOfE2BContainUnusedKAndV) {
  const std::pair<const char*, std::int64_t> totals[] = {{"gemma4-e2b", 4'647'449'856}, {"gemma4-e4b", 7'518'068'992}};
  for (const auto& [id, total] : totals) {
    const Config c = catalogue_config(id);
    const TensorInventory inventory(c);
    std::int64_t n = inventory.parameters();
    for (const Layer& l : c.layers)
      if (!l.has_k) n += 2ll * l.kv_heads * l.head_dim * c.dim + l.head_dim;
    EXPECT_EQ(n, total) << id;
  }
}

TEST(Inventory, ListsExpertsOf26B) {
  const TensorInventory inventory(catalogue_config("gemma4-26b-a4b"));
  const Tensor& up = *inventory.find(Role::experts_gate_up, 0);
  EXPECT_EQ(up.hf_name, "model.language_model.layers.0.experts.gate_up_proj");
  EXPECT_EQ(up.hf_shape, (std::vector<std::int64_t>{128, 1408, 2816}));
  EXPECT_EQ(up.tunix_path, "layers.0.moe.gating_einsum");
  EXPECT_EQ(inventory.find(Role::experts_down, 0)->hf_shape, (std::vector<std::int64_t>{128, 2816, 704}));
  EXPECT_EQ(inventory.find(Role::router_proj, 0)->tunix_path, "layers.0.moe.router_logits");
  EXPECT_EQ(inventory.find(Role::per_expert_scale, 0)->hf_name,
            "model.language_model.layers.0.router.per_expert_scale");
  EXPECT_EQ(inventory.find(Role::dense_post_ffw_norm, 0)->hf_name,
            "model.language_model.layers.0.post_feedforward_layernorm_1.weight");
}

TEST(Inventory, CombinesQkvOfMultiHeadAttentionInTunix) {
  Config c = catalogue_config("gemma3-270m");
  for (Layer& l : c.layers) l.kv_heads = l.heads;
  const TensorInventory inventory(c);
  for (const Role role : {Role::q_proj, Role::k_proj, Role::v_proj})
    EXPECT_EQ(inventory.find(role, 0)->tunix_path, "layers.0.attn.qkv_einsum.w");
  EXPECT_EQ(inventory.find(Role::q_proj, 0)->tunix_slot, 0);
  EXPECT_EQ(inventory.find(Role::v_proj, 0)->tunix_slot, 2);
}

}  // namespace
}  // namespace mw::model
