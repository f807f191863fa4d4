// SPDX-License-Identifier: Apache-2.0
// The text-only config.json of a model, in the key set that transformers 4.57 and 5 both load.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/model/config.h"

namespace mw::model {
namespace {

// The shortest decimal that reads back to the same float, so that 1e-6f is written 1e-06 and not 9.99999997e-07.
Json number(float value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double shortest = value;
  std::from_chars(text.data(), end, shortest);
  return shortest;
}

Json cap(float value) {
  return value > 0 ? number(value) : Json(nullptr);
}

// query_pre_attn_scalar: its inverse square root is the scale. A whole number wherever one gives the same float.
Json scalar_of(float scale) {
  const double exact = 1.0 / (static_cast<double>(scale) * scale);
  const double whole = std::round(exact);
  if (whole >= 1 && whole < 1e9 && static_cast<float>(1.0 / std::sqrt(whole)) == scale)
    return static_cast<long long>(whole);
  return exact;
}

Json rope_of(const Layer& l) {
  Json r{{"rope_theta", number(l.rope_theta)}};
  r["rope_type"] = l.rope == Rope::linear ? "linear" : l.rope == Rope::proportional ? "proportional" : "default";
  if (l.rope == Rope::linear) r["factor"] = number(l.rope_factor);
  if (l.rope == Rope::proportional) r["partial_rotary_factor"] = number(l.rope_factor);
  return r;
}

Json ropes_of(const Config& c) {
  if (c.family == Family::gemma2) return rope_of(c.layers.front());
  Json all = Json::object();
  for (const Layer& l : c.layers) {
    const char* kind = l.attention == Attention::full ? "full_attention" : "sliding_attention";
    if (!all.contains(kind)) all[kind] = rope_of(l);
  }
  return all;
}

const Layer& first_of(const Config& c, Attention kind) {
  const auto at = std::find_if(c.layers.begin(), c.layers.end(), [&](const Layer& l) { return l.attention == kind; });
  return at == c.layers.end() ? c.layers.front() : *at;
}

void gemma4_keys(const Config& c, Json& j) {
  const Layer& full = first_of(c, Attention::full);
  const bool k_is_v = std::any_of(c.layers.begin(), c.layers.end(), [](const auto& l) { return l.has_k && !l.has_v; });
  const auto shared = std::count_if(c.layers.begin(), c.layers.end(), [](const Layer& l) { return !l.has_k; });
  j["global_head_dim"] = full.head_dim;
  j["attention_k_eq_v"] = k_is_v;
  j["num_global_key_value_heads"] = k_is_v ? Json(full.kv_heads) : Json(nullptr);
  j["num_kv_shared_layers"] = shared;
  j["use_double_wide_mlp"] = shared > 0 && c.layers.back().mlp_dim == 2 * c.layers.front().mlp_dim;
  j["use_bidirectional_attention"] = nullptr;  // text only
  if (c.hf_model_type.starts_with("gemma4_unified")) return;
  j["hidden_size_per_layer_input"] = c.ple_dim;
  j["vocab_size_per_layer_input"] = c.vocab;
  j["enable_moe_block"] = c.experts > 0;
  j["num_experts"] = c.experts > 0 ? Json(c.experts) : Json(nullptr);
  j["top_k_experts"] = c.experts > 0 ? Json(c.experts_per_token) : Json(nullptr);
  j["moe_intermediate_size"] = c.experts > 0 ? Json(c.expert_dim) : Json(nullptr);
}

Json write(const Config& c) {
  const Layer& local = first_of(c, Attention::sliding);
  Json types = Json::array();
  for (const Layer& l : c.layers)
    types.push_back(l.attention == Attention::full ? "full_attention" : "sliding_attention");
  Json j{{"architectures", {c.hf_architecture}},
         {"model_type", c.hf_model_type},
         {"vocab_size", c.vocab},
         {"hidden_size", c.dim},
         {"intermediate_size", c.layers.front().mlp_dim},
         {"num_hidden_layers", c.layers.size()},
         {"num_attention_heads", local.heads},
         {"num_key_value_heads", local.kv_heads},
         {"head_dim", local.head_dim},
         {"max_position_embeddings", c.max_positions},
         {"sliding_window", c.sliding_window},
         {"layer_types", types},
         {"rope_parameters", ropes_of(c)},
         {"rms_norm_eps", number(c.norm_eps)},
         {"final_logit_softcapping", cap(c.final_softcap)},
         {"hidden_activation", "gelu_pytorch_tanh"},
         {"attention_bias", false},
         {"attention_dropout", 0.0},
         {"initializer_range", 0.02},
         {"tie_word_embeddings", true},
         {"use_cache", true},
         {"pad_token_id", 0},
         {"eos_token_id", 1},
         {"bos_token_id", 2}};
  if (c.family == Family::gemma4) {
    gemma4_keys(c, j);
  } else {
    j["query_pre_attn_scalar"] = scalar_of(c.attention_scale);
    j["attn_logit_softcapping"] = cap(c.attention_softcap);
  }
  return j;
}

}  // namespace

Config text_only(Config config) {
  if (config.family == Family::gemma3) {
    config.hf_model_type = "gemma3_text";
    config.hf_architecture = "Gemma3ForCausalLM";
  } else if (config.family == Family::gemma4) {
    const bool unified = config.hf_model_type.starts_with("gemma4_unified");
    config.hf_model_type = unified ? "gemma4_unified_text" : "gemma4_text";
    config.hf_architecture = unified ? "Gemma4UnifiedForCausalLM" : "Gemma4ForCausalLM";
  }
  config.hf_prefix = "model.";
  return config;
}

Json to_hf_config(const Config& config) {
  if (planning_only(config))
    throw Error({.id = "CONFIG",
                 .message = "a model known for planning only cannot be saved",
                 .file = config.id,
                 .found = config.hf_model_type,
                 .expected = "a Gemma model"});
  const Config text = text_only(config);
  if (text.layers.empty()) throw Error({.id = "CONFIG", .message = "a model without layers cannot be saved"});
  const Json json = write(text);
  const std::string file = text.id + "/config.json";
  Config back = from_hf_config(json, file);
  back.id = text.id;  // a folder name; not part of the format
  if (!(back == text))
    throw Error({.id = "CONFIG",
                 .message = "this model cannot be written as a config.json",
                 .file = file,
                 .found = "layers that differ in ways the format has no key for"});
  return json;
}

}  // namespace mw::model
