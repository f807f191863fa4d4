// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

class EveryConfig : public testing::TestWithParam<std::string> {};

TEST_P(EveryConfig, ConfigJsonRoundTrips) {
  const Config c = catalogue_config(GetParam());
  EXPECT_EQ(from_hf_config(to_hf_config(c), c.id + "/config.json"), text_only(c));
}

// Ids of the models that the engine can run.
std::vector<std::string> gemma_ids() {
  std::vector<std::string> ids = catalogue_ids();
  std::erase_if(ids, [](const std::string& id) { return is_planning_only(catalogue_config(id)); });
  return ids;
}

INSTANTIATE_TEST_SUITE_P(HfConfig, EveryConfig, testing::ValuesIn(gemma_ids()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Keys of the Gemma 3 4B file on the hub, which omits default values.
Json gemma3_4b_hub() {
  return Json::parse(R"({
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "boi_token_index": 255999,
    "image_token_index": 262144, "mm_tokens_per_image": 256, "torch_dtype": "bfloat16",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
      "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27, "model_type": "siglip_vision_model"}})");
}

TEST(HfConfig, ReadsMultimodalGemma3) {
  EXPECT_EQ(from_hf_config(gemma3_4b_hub(), "gemma3-4b/config.json"), catalogue_config("gemma3-4b"));
}

TEST(HfConfig, ReadsOldAndNewGemma3Keys) {
  Json old_style = Json::parse(R"({
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "attention_bias": false,
    "attn_logit_softcapping": null, "cache_implementation": "hybrid", "final_logit_softcapping": null,
    "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 6912,
    "max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling": null,
    "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144})");
  EXPECT_EQ(from_hf_config(old_style, "gemma3-1b/config.json"), catalogue_config("gemma3-1b"));

  Json new_style = to_hf_config(catalogue_config("gemma3-1b"));
  EXPECT_EQ(from_hf_config(new_style, "gemma3-1b/config.json"), catalogue_config("gemma3-1b"));
  EXPECT_FALSE(new_style.contains("rope_theta"));

  old_style["sliding_window_pattern"] = 2;
  EXPECT_EQ(from_hf_config(old_style, "x/config.json").layers[1].attention, Attention::full);
  old_style.erase("sliding_window_pattern");
  old_style["_sliding_window_pattern"] = 3;
  EXPECT_EQ(from_hf_config(old_style, "x/config.json").layers[2].attention, Attention::full);
}

TEST(HfConfig, ReadsOldAndNewGemma2Keys) {
  const Json old_style = Json::parse(R"({
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0, "head_dim": 128, "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 4608, "intermediate_size": 36864,
    "max_position_embeddings": 8192, "num_attention_heads": 32, "num_hidden_layers": 46, "num_key_value_heads": 16,
    "query_pre_attn_scalar": 144, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096,
    "vocab_size": 256000})");
  EXPECT_EQ(from_hf_config(old_style, "gemma2-27b/config.json"), catalogue_config("gemma2-27b"));
  EXPECT_EQ(from_hf_config(to_hf_config(catalogue_config("gemma2-27b")), "gemma2-27b/config.json"),
            catalogue_config("gemma2-27b"));
}

TEST(HfConfig, ReadsGlobalSizesOfGemma4FromBothKeySets) {
  const Config c = catalogue_config("gemma4-31b");
  Json json = to_hf_config(c);
  EXPECT_EQ(json.at("global_head_dim"), 512);
  json.erase("global_head_dim");
  json.erase("num_global_key_value_heads");
  for (int i = 5; i < 60; i += 6)
    json["per_layer_config"][std::to_string(i)] = {{"head_dim", 512}, {"num_key_value_heads", 4}};
  EXPECT_EQ(from_hf_config(json, "gemma4-31b/config.json"), text_only(c));
}

TEST(HfConfig, ReadsMultimodalGemma4) {
  Json json{{"model_type", "gemma4"}, {"text_config", to_hf_config(catalogue_config("gemma4-e2b"))}};
  EXPECT_EQ(from_hf_config(json, "gemma4-e2b/config.json"), catalogue_config("gemma4-e2b"));
  json = {{"model_type", "gemma4_unified"}, {"text_config", to_hf_config(catalogue_config("gemma4-12b"))}};
  EXPECT_EQ(from_hf_config(json, "gemma4-12b/config.json"), catalogue_config("gemma4-12b"));
}

TEST(HfConfig, LastLayerOfGemma4IsAlwaysGlobal) {
  Json json = to_hf_config(catalogue_config("gemma4-31b"));
  json["layer_types"][59] = "sliding_attention";
  EXPECT_EQ(from_hf_config(json, "x/config.json").layers[59].attention, Attention::full);
}

TEST(HfConfig, WritesUnusualScalesAndEpsilonsExactly) {
  Config c = catalogue_config("gemma3-270m");
  for (const float scale : {0.1f, 0.333f, 1.7f, 1e-3f}) {
    c.attention_scale = scale;
    c.norm_eps = 3.7e-6f;
    EXPECT_EQ(from_hf_config(to_hf_config(c), "gemma3-270m/config.json"), c);
  }
  EXPECT_EQ(to_hf_config(catalogue_config("gemma3-27b")).at("query_pre_attn_scalar"), 168);
  EXPECT_EQ(to_hf_config(catalogue_config("gemma3-27b")).at("rms_norm_eps").dump(), "1e-06");
}

TEST(HfConfig, RefusesToWriteInexpressibleLayers) {
  Config c = catalogue_config("gemma3-270m");
  c.layers[3].mlp_dim = 1024;
  EXPECT_THROW(to_hf_config(c), Error);
  c.layers.clear();
  EXPECT_THROW(to_hf_config(c), Error);
}

struct Broken {
  const char* name;
  std::function<void(Json&)> edit;
  const char* place;
  const char* model = "gemma3-1b";
};
void PrintTo(const Broken& b, std::ostream* os) {
  *os << b.name;
}

class BrokenConfig : public testing::TestWithParam<Broken> {};

TEST_P(BrokenConfig, IsRejectedWithItsPlace) {
  Json json = to_hf_config(catalogue_config(GetParam().model));
  GetParam().edit(json);
  try {
    from_hf_config(json, "folder/config.json");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().file, "folder/config.json");
    EXPECT_EQ(e.problem().place, GetParam().place);
    EXPECT_FALSE(e.problem().message.empty());
    EXPECT_EQ(e.kind(), Error::Kind::bad_input);
  }
}

template <class Value>
auto set(const char* key, Value value) {
  return [key, value](Json& j) { j[key] = value; };
}
auto erase(const char* key) {
  return [key](Json& j) { j.erase(key); };
}

INSTANTIATE_TEST_SUITE_P(
    HfConfig, BrokenConfig,
    testing::Values(
        Broken{"no_model_type", erase("model_type"), "model_type"},
        Broken{"unknown_type", set("model_type", "falcon"), "model_type"},
        Broken{"llama", set("model_type", "llama"), "architectures"},
        Broken{"model_type_number", set("model_type", 3), "model_type"},
        Broken{"architecture", set("architectures", Json{"Gemma3ForSequenceClassification"}), "architectures"},
        Broken{"architecture_text", set("architectures", "Gemma3ForCausalLM"), "architectures"},
        Broken{"no_hidden_size", erase("hidden_size"), "hidden_size"},
        Broken{"zero_hidden_size", set("hidden_size", 0), "hidden_size"},
        Broken{"negative_layers", set("num_hidden_layers", -1), "num_hidden_layers"},
        Broken{"too_many_layers", set("num_hidden_layers", 1'000'000'000), "num_hidden_layers"},
        Broken{"fractional_size", set("intermediate_size", 12.5), "intermediate_size"},
        Broken{"text_size", set("intermediate_size", "12"), "intermediate_size"},
        Broken{"overflowing_vocab", set("vocab_size", 18446744073709551615ull), "vocab_size"},
        Broken{"kv_heads_do_not_divide", set("num_key_value_heads", 3), "num_key_value_heads"},
        Broken{"zero_kv_heads", set("num_key_value_heads", 0), "num_key_value_heads"},
        Broken{"odd_head_dim", set("head_dim", 255), "head_dim"},
        Broken{"heads_times_head_dim", [](Json& j) { j["num_attention_heads"] = 4096, j["head_dim"] = 8192; },
               "num_attention_heads"},
        Broken{"short_layer_types", set("layer_types", Json{"full_attention"}), "layer_types"},
        Broken{"unknown_layer_type", [](Json& j) { j["layer_types"][2] = "mamba"; }, "layer_types[2]"},
        Broken{"missing_rope_kind", [](Json& j) { j["rope_parameters"].erase("full_attention"); },
               "rope_parameters.full_attention"},
        Broken{"unknown_rope_type", [](Json& j) { j["rope_parameters"]["full_attention"]["rope_type"] = "yarn"; },
               "rope_parameters.full_attention.rope_type"},
        Broken{"linear_rope_without_factor",
               [](Json& j) { j["rope_parameters"]["full_attention"]["rope_type"] = "linear"; },
               "rope_parameters.full_attention.factor"},
        Broken{"negative_theta", [](Json& j) { j["rope_parameters"]["sliding_attention"]["rope_theta"] = -1; },
               "rope_parameters.sliding_attention.rope_theta"},
        Broken{"rope_list", set("rope_parameters", Json::array()), "rope_parameters"},
        Broken{"partial_above_one",
               [](Json& j) { j["rope_parameters"]["full_attention"]["partial_rotary_factor"] = 1.5; },
               "rope_parameters.full_attention.partial_rotary_factor", "gemma4-31b"},
        Broken{"zero_scalar", set("query_pre_attn_scalar", 0), "query_pre_attn_scalar"},
        Broken{"negative_epsilon", set("rms_norm_eps", -1e-6), "rms_norm_eps"},
        Broken{"zero_window", set("sliding_window", 0), "sliding_window"},
        Broken{"silu", set("hidden_activation", "silu"), "hidden_activation"},
        Broken{"biases", set("attention_bias", true), "attention_bias"},
        Broken{"untied", set("tie_word_embeddings", false), "tie_word_embeddings"},
        Broken{"bidirectional", set("use_bidirectional_attention", true), "use_bidirectional_attention"},
        Broken{"quantised", set("quantization_config", Json{{"quant_method", "awq"}}), "quantization_config"},
        Broken{"multimodal_without_text", set("model_type", "gemma3"), "architectures"},
        Broken{"all_layers_shared", set("num_kv_shared_layers", 35), "num_kv_shared_layers", "gemma4-e2b"},
        Broken{"no_donor", set("num_kv_shared_layers", 32), "num_kv_shared_layers", "gemma4-e2b"},
        Broken{"other_ple_vocab", set("vocab_size_per_layer_input", 1000), "vocab_size_per_layer_input", "gemma4-e2b"},
        Broken{"more_active_experts_than_experts", set("top_k_experts", 129), "top_k_experts", "gemma4-26b-a4b"},
        Broken{"no_experts", erase("num_experts"), "num_experts", "gemma4-26b-a4b"},
        Broken{"override_of_a_missing_layer",
               [](Json& j) {
                 j["per_layer_config"]["77"] = {{"head_dim", 512}};
               },
               "per_layer_config.77", "gemma4-31b"},
        Broken{"unknown_override",
               [](Json& j) {
                 j["per_layer_config"]["5"] = {{"intermediate_size", 512}};
               },
               "per_layer_config.5.intermediate_size", "gemma4-31b"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(HfConfig, RejectsListsAndStrings) {
  for (const Json& json : {Json::array(), Json("x"), Json(nullptr), Json(3)})
    EXPECT_THROW(from_hf_config(json, "x/config.json"), Error);
  EXPECT_THROW(from_hf_config(Json{{"model_type", "gemma3"}}, "x/config.json"), Error);
  EXPECT_THROW(from_hf_config(Json{{"model_type", "gemma3"}, {"text_config", 3}}, "x/config.json"), Error);
}

// Replaces random values in real configs by values of other types and sizes.
TEST(HfConfigMutation, GivesModelWithinBoundsOrError) {
  const std::vector<Json> values{
      0,    1,    -1,    7,       4096, 1ll << 40, 18446744073709551615ull, 0.5,           1e308,
      -0.0, true, false, nullptr, "",   "linear",  "full_attention",        Json::array(), Json::object()};
  Rng rng{2026};
  int accepted = 0;
  for (const std::string& id : gemma_ids()) {
    const Json good = to_hf_config(catalogue_config(id)).flatten();
    for (int round = 0; round < 150; ++round) {
      Json flat = good;
      for (std::uint64_t n = 1 + rng.below(2); n > 0; --n)
        std::next(flat.begin(), static_cast<std::ptrdiff_t>(rng.below(flat.size()))).value() =
            values[rng.below(values.size())];
      try {
        const Config c = from_hf_config(flat.unflatten(), "x/config.json");
        EXPECT_GT(TensorInventory(c).parameters(), 0);
        ++accepted;
      } catch (const Error&) {
      } catch (const Json::exception&) {  // the edited tree cannot be unflattened
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace mw::model
