// SPDX-License-Identifier: GPL-3.0-or-later
// Models known for planning only: published sizes, tensor names in safetensors files and in Tunix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/model/catalogue.h"
#include "core/model/config.h"
#include "core/model/hf_config.h"
#include "core/model/inventory.h"

namespace mw::model {
namespace {

using testing::HasSubstr;

// Numbers from the safetensors metadata on the hub.
TEST(PlanningModels, HavePublishedNumberOfParameters) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"llama2-7b", 6'738'415'616},       {"llama2-13b", 13'015'864'320},       {"llama2-70b", 68'976'648'192},
      {"llama3.1-8b", 8'030'261'248},     {"llama3.1-70b", 70'553'706'496},     {"llama3.1-405b", 405'853'388'800},
      {"llama3.2-3b", 3'212'749'824},     {"llama3.3-70b", 70'553'706'496},     {"qwen3-32b", 32'762'123'264},
      {"llama3.2-1b", 1'235'814'400},     {"qwen3-0.6b", 596'049'920},          {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},        {"qwen3-8b", 8'190'735'360},          {"qwen3-14b", 14'768'307'200},
      {"qwen3-30b-a3b", 30'532'122'624},  {"qwen3-235b-a22b", 235'093'634'560}, {"mistral-7b-v0.1", 7'241'732'096},
      {"mistral-7b-v0.3", 7'248'023'552}, {"gemma1-2b", 2'506'172'416},         {"gemma1-7b", 8'537'680'896}};
  for (const auto& [id, parameters] : published) {
    const Config c = catalogue_config(id);
    EXPECT_TRUE(is_planning_only(c)) << id;
    EXPECT_EQ(TensorInventory(c).parameters(), parameters) << id;
  }
  EXPECT_FALSE(is_planning_only(catalogue_config("gemma3-1b")));
}

// Keys and values of one token of Llama 3 70B in bf16: about 324 kB.
TEST(PlanningModels, UseGroupedQueryAttention) {
  std::int64_t bytes = 0;
  for (const Layer& l : catalogue_config("llama3.1-70b").layers) bytes += 2LL * 2 * l.kv_heads * l.head_dim;
  EXPECT_EQ(bytes, 327'680);
}

TEST(PlanningModels, NameTensorsOfLlama) {
  const TensorInventory inventory(catalogue_config("llama3.1-8b"));
  const Tensor& q = *inventory.find(Role::q_proj, 3);
  EXPECT_EQ(q.hf_name, "model.layers.3.self_attn.q_proj.weight");
  EXPECT_EQ(q.tunix_path, "layers.3.attn.q_proj.w");
  EXPECT_EQ(q.dims, (std::vector<Dim>{{Axis::embed, 4096}, {Axis::heads, 32}, {Axis::head_dim, 128}}));
  const Tensor& v = *inventory.find(Role::v_proj, 3);
  EXPECT_EQ(v.hf_shape, (std::vector<std::int64_t>{1024, 4096}));
  EXPECT_EQ(v.dims, (std::vector<Dim>{{Axis::embed, 4096}, {Axis::kv_heads, 8}, {Axis::head_dim, 128}}));
  EXPECT_EQ(inventory.find(Role::pre_ffw_norm, 3)->hf_name, "model.layers.3.post_attention_layernorm.weight");
  EXPECT_EQ(inventory.find(Role::pre_ffw_norm, 3)->tunix_path, "layers.3.post_attention_layernorm.w");
  for (const Role role : {Role::post_attention_norm, Role::post_ffw_norm, Role::q_norm, Role::k_norm})
    EXPECT_EQ(inventory.find(role, 3), nullptr);
  const Tensor& head = *inventory.find(Role::lm_head);
  EXPECT_EQ(head.hf_name, "lm_head.weight");
  EXPECT_EQ(head.hf_shape, (std::vector<std::int64_t>{128256, 4096}));
  EXPECT_EQ(head.dims, (std::vector<Dim>{{Axis::embed, 4096}, {Axis::vocab, 128256}}));
  EXPECT_EQ(head.tunix_path, "lm_head.w");
  EXPECT_EQ(inventory.lora_targets().size(), 7u * 32);
  EXPECT_EQ(inventory.lora_targets()[0].peft_a, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(TensorInventory(catalogue_config("llama3.2-3b")).find(Role::lm_head), nullptr) << "tied";
}

TEST(PlanningModels, QwenHasQkNorm) {
  const TensorInventory inventory(catalogue_config("qwen3-32b"));
  EXPECT_EQ(inventory.find(Role::q_norm, 0)->hf_name, "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(inventory.find(Role::k_norm, 0)->tunix_path, "layers.0.attn.k_norm.w");
  EXPECT_EQ(inventory.find(Role::q_proj, 0)->hf_shape, (std::vector<std::int64_t>{8192, 5120})) << "heads x 128 > dim";
}

// Keys of the files on the hub.
Json llama31_8b() {
  return Json::parse(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256})");
}
Json qwen3_32b() {
  return Json::parse(R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 25600, "max_position_embeddings": 40960,
    "max_window_layers": 64, "model_type": "qwen3", "num_attention_heads": 64, "num_hidden_layers": 64,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
    "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})");
}

TEST(PlanningModels, ReadConfigOfHub) {
  EXPECT_EQ(from_hf_config(llama31_8b(), "llama3.1-8b/config.json"), catalogue_config("llama3.1-8b"));
  EXPECT_EQ(from_hf_config(qwen3_32b(), "qwen3-32b/config.json"), catalogue_config("qwen3-32b"));
  const Json llama2 = Json::parse(R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "rms_norm_eps": 1e-05,
    "rope_scaling": null, "tie_word_embeddings": false, "vocab_size": 32000})");
  EXPECT_EQ(from_hf_config(llama2, "llama2-7b/config.json"), catalogue_config("llama2-7b"));
}

TEST(PlanningModels, ReadOptionalKeys) {
  Json llama = llama31_8b();
  llama["rope_parameters"] = {{"rope_theta", 10000.0}, {"rope_type", "default"}};  // transformers 5
  llama["head_dim"] = 64, llama["tie_word_embeddings"] = true;
  const Config c = from_hf_config(llama, "x/config.json");
  EXPECT_EQ(c.layers[7].rope_theta, 10000.0f);
  EXPECT_EQ(c.layers[7].head_dim, 64);
  EXPECT_TRUE(c.tied_embeddings);
  Json qwen = qwen3_32b();
  qwen["use_sliding_window"] = true, qwen["sliding_window"] = 1000, qwen["max_window_layers"] = 60;
  const Config windowed = from_hf_config(qwen, "x/config.json");
  EXPECT_EQ(windowed.sliding_window, 1000);
  EXPECT_EQ(windowed.layers[59].attention, Attention::full);
  EXPECT_EQ(windowed.layers[60].attention, Attention::sliding);
}

TEST(PlanningModels, RejectBrokenConfigs) {
  const std::pair<std::function<void(Json&)>, const char*> broken[] = {
      {[](Json& j) { j["hidden_act"] = "gelu"; }, "hidden_act"},
      {[](Json& j) { j["mlp_bias"] = true; }, "mlp_bias"},
      {[](Json& j) { j["num_attention_heads"] = 24; }, "num_attention_heads"},
      {[](Json& j) { j["num_key_value_heads"] = 5; }, "num_key_value_heads"},
      {[](Json& j) { j["hidden_size"] = -1; }, "hidden_size"},
      {[](Json& j) { j.erase("intermediate_size"); }, "intermediate_size"},
      {[](Json& j) { j["rope_theta"] = 0; }, "rope_theta"},
      {[](Json& j) { j["rope_parameters"] = 3; }, "rope_parameters"},
      {[](Json& j) { j["architectures"] = {"LlamaForSequenceClassification"}; }, "architectures"},
      {[](Json& j) {
         j["quantization_config"] = {{"quant_method", "fp8"}};
       },
       "quantization_config"}};
  for (const auto& [edit, place] : broken) {
    Json json = llama31_8b();
    edit(json);
    try {
      from_hf_config(json, "folder/config.json");
      ADD_FAILURE() << "accepted: " << place;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().file, "folder/config.json");
      EXPECT_THAT(e.problem().place, HasSubstr(place));
    }
  }
}

TEST(PlanningModels, MutatedConfigsGiveModelWithinBoundsOrError) {
  const std::vector<Json> values{0,     1,    -1,    7,       4096, 1ll << 40, 18446744073709551615ull, 0.5,
                                 1e308, true, false, nullptr, "",   "silu",    Json::array(),           Json::object()};
  Rng rng{2027};
  int accepted = 0;
  for (const Json& good : {llama31_8b(), qwen3_32b()})
    for (int round = 0; round < 1000; ++round) {
      Json json = good;
      for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
        std::next(json.begin(), static_cast<std::ptrdiff_t>(rng.below(json.size()))).value() =
            values[rng.below(values.size())];
      try {
        EXPECT_GT(TensorInventory(from_hf_config(json, "x/config.json")).parameters(), 0);
        ++accepted;
      } catch (const Error&) {
      }
    }
  EXPECT_GT(accepted, 100);
}

TEST(PlanningModels, AreNotSaved) {
  EXPECT_THROW(to_hf_config(catalogue_config("llama3.1-8b")), Error);
}

// Keys of the files on the hub.
TEST(PlanningModels, ReadMistralQwenMoeAndGemma1) {
  const auto read = [](const char* text, const char* id) {
    return from_hf_config(Json::parse(text), std::string(id) + "/config.json");
  };
  EXPECT_EQ(read(R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
      "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
      "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000})",
                 "mistral-7b-v0.1"),
            catalogue_config("mistral-7b-v0.1"));
  EXPECT_EQ(read(R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
      "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
      "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 32768})",
                 "mistral-7b-v0.3"),
            catalogue_config("mistral-7b-v0.3"));
  const std::string moe = R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
      "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
      "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
      "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
      "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false,
      "vocab_size": 151936})";
  EXPECT_EQ(read(moe.c_str(), "qwen3-30b-a3b"), catalogue_config("qwen3-30b-a3b"));
  Json dense = Json::parse(moe);
  dense["mlp_only_layers"] = {0};
  EXPECT_THROW(from_hf_config(dense, "x/config.json"), Error);
  EXPECT_EQ(read(R"({"architectures": ["GemmaForCausalLM"], "attention_bias": false, "head_dim": 256,
      "hidden_act": "gelu", "hidden_size": 2048, "intermediate_size": 16384, "max_position_embeddings": 8192,
      "model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1,
      "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "vocab_size": 256000})",
                 "gemma1-2b"),
            catalogue_config("gemma1-2b"));
}

TEST(PlanningModels, QwenMoeHasExpertsInsteadOfADenseMlp) {
  const TensorInventory inventory(catalogue_config("qwen3-30b-a3b"));
  EXPECT_EQ(inventory.find(Role::gate_proj, 0), nullptr);
  EXPECT_EQ(inventory.find(Role::experts_gate_up, 0)->hf_shape, (std::vector<std::int64_t>{128, 2 * 768, 2048}));
  EXPECT_EQ(inventory.find(Role::router_scale, 0), nullptr);
  EXPECT_EQ(inventory.lora_targets().size(), 4u * 48) << "no adapters on experts";
}

// The files on the hub have K, V and k_norm of layers that borrow them, too, and the towers of images and sound, which
// are the same for both sizes. Totals: safetensors metadata of google/gemma-3n-E2B-it and -E4B-it.
TEST(PlanningModels, Gemma3nHasThePublishedNumberOfParameters) {
  const auto towers = [](const char* id, std::int64_t published) {
    const Config c = catalogue_config(id);
    std::int64_t text = TensorInventory(c).parameters();
    for (const Layer& l : c.layers)
      if (!l.has_k) text += 2LL * l.kv_heads * l.head_dim * c.dim + l.head_dim;
    return published - text;
  };
  EXPECT_EQ(towers("gemma3n-e2b", 5'439'438'272), 983'281'504);
  EXPECT_EQ(towers("gemma3n-e4b", 7'849'978'192), 983'281'504);
  EXPECT_TRUE(is_planning_only(catalogue_config("gemma3n-e4b")));
}

TEST(PlanningModels, Gemma3nSharesKAndVOfItsLastLayers) {
  const Config c = catalogue_config("gemma3n-e4b");
  ASSERT_EQ(c.layers.size(), 35u);
  for (size_t i = 0; i < c.layers.size(); ++i) {
    const Layer& l = c.layers[i];
    EXPECT_EQ(l.attention, i % 5 == 4 ? Attention::full : Attention::sliding) << i;
    EXPECT_EQ(l.has_k, i < 20) << i;
    EXPECT_EQ(l.kv_donor, i < 20 ? -1 : l.attention == Attention::full ? 19 : 18) << i;
    EXPECT_EQ(l.gate_sparsity, i < 10 ? 0.95f : 0.0f) << i;
  }
}

TEST(PlanningModels, NameTensorsOfGemma3n) {
  const TensorInventory inventory(catalogue_config("gemma3n-e2b"));
  EXPECT_EQ(inventory.find(Role::laurel_left, 3)->hf_name, "model.language_model.layers.3.laurel.linear_left.weight");
  EXPECT_EQ(inventory.find(Role::laurel_right, 3)->hf_shape, (std::vector<std::int64_t>{2048, 64}));
  EXPECT_EQ(inventory.find(Role::altup_prediction_coefs, 0)->hf_shape, (std::vector<std::int64_t>{16, 4}));
  EXPECT_EQ(inventory.find(Role::altup_output_scale, 0)->hf_name,
            "model.language_model.layers.0.altup.correct_output_scale");
  EXPECT_EQ(inventory.find(Role::altup_unembed_projections)->elements(), 3 * 2048 * 2048);
  EXPECT_EQ(inventory.find(Role::ple_embed)->hf_shape, (std::vector<std::int64_t>{262144, 30 * 256}));
  EXPECT_EQ(inventory.find(Role::embed)->hf_shape, (std::vector<std::int64_t>{262400, 2048}));
  EXPECT_EQ(inventory.find(Role::layer_scalar, 0), nullptr);
}

// Keys of the text part of the files on the hub.
Json gemma3n_e2b() {
  Json text = Json::parse(R"({"model_type": "gemma3n_text", "activation_sparsity_pattern": [], "altup_active_idx": 0,
    "altup_coef_clip": 120.0, "altup_correct_scale": true, "altup_num_inputs": 4, "attention_bias": false,
    "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2048,
    "hidden_size_per_layer_input": 256, "intermediate_size": [], "laurel_rank": 64, "layer_types": [],
    "max_position_embeddings": 32768, "num_attention_heads": 8, "num_hidden_layers": 30, "num_key_value_heads": 2,
    "num_kv_shared_layers": 10, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0, "rope_scaling": null,
    "rope_theta": 1000000.0, "sliding_window": 512, "vocab_size": 262400, "vocab_size_per_layer_input": 262144})");
  for (int i = 0; i < 30; ++i) {
    text["activation_sparsity_pattern"].push_back(i < 10 ? 0.95 : 0.0);
    text["intermediate_size"].push_back(8192);
    text["layer_types"].push_back(i % 5 == 4 ? "full_attention" : "sliding_attention");
  }
  return {{"architectures", {"Gemma3nForConditionalGeneration"}}, {"model_type", "gemma3n"}, {"text_config", text}};
}

TEST(PlanningModels, ReadGemma3n) {
  EXPECT_EQ(from_hf_config(gemma3n_e2b(), "gemma3n-e2b/config.json"), catalogue_config("gemma3n-e2b"));
  Json defaults = gemma3n_e2b();
  Json& text = defaults["text_config"];
  for (const char* key :
       {"activation_sparsity_pattern", "altup_num_inputs", "laurel_rank", "layer_types", "rope_theta"})
    text.erase(key);
  text["intermediate_size"] = 8192;
  EXPECT_EQ(from_hf_config(defaults, "gemma3n-e2b/config.json"), catalogue_config("gemma3n-e2b"));
  EXPECT_THROW(to_hf_config(catalogue_config("gemma3n-e2b")), Error);
}

TEST(PlanningModels, RejectBrokenGemma3n) {
  const std::pair<std::function<void(Json&)>, const char*> broken[] = {
      {[](Json& j) { j["intermediate_size"].push_back(1); }, "text_config.intermediate_size"},
      {[](Json& j) { j["intermediate_size"][3] = "wide"; }, "text_config.intermediate_size[3]"},
      {[](Json& j) { j.erase("intermediate_size"); }, "text_config.intermediate_size"},
      {[](Json& j) { j["activation_sparsity_pattern"][2] = 1.5; }, "text_config.activation_sparsity_pattern[2]"},
      {[](Json& j) { j["altup_num_inputs"] = 1; }, "text_config.altup_num_inputs"},
      {[](Json& j) { j["vocab_size_per_layer_input"] = 300000; }, "text_config.vocab_size_per_layer_input"},
      {[](Json& j) { j["num_kv_shared_layers"] = 30; }, "text_config.num_kv_shared_layers"}};
  for (const auto& [edit, place] : broken) {
    Json json = gemma3n_e2b();
    edit(json["text_config"]);
    try {
      from_hf_config(json, "folder/config.json");
      ADD_FAILURE() << "accepted: " << place;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().place, place);
    }
  }
}

}  // namespace
}  // namespace mw::model
