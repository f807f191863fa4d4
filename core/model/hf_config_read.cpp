// SPDX-License-Identifier: Apache-2.0
// config.json of transformers, old keys and new. Defaults are those of the configuration classes: hub files of Gemma 3
// leave out what equals them.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/model/hf_section.h"

namespace mw::model {
namespace {

struct Kind {  // one model_type
  std::string_view model_type, architecture;
  Family family;
  std::string_view prefix;
  bool multimodal;  // the language model stands in text_config
};
constexpr std::array<Kind, 9> kKinds{
    {{"gemma2", "Gemma2ForCausalLM", Family::gemma2, "model.", false},
     {"gemma3_text", "Gemma3ForCausalLM", Family::gemma3, "model.", false},
     {"gemma3", "Gemma3ForConditionalGeneration", Family::gemma3, "language_model.model.", true},
     {"gemma4_text", "Gemma4ForCausalLM", Family::gemma4, "model.", false},
     {"gemma4", "Gemma4ForConditionalGeneration", Family::gemma4, "model.language_model.", true},
     {"gemma4_unified_text", "Gemma4UnifiedForCausalLM", Family::gemma4, "model.", false},
     {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", Family::gemma4, "model.language_model.", true},
     {"llama", "LlamaForCausalLM", Family::llama, "model.", false},
     {"qwen3", "Qwen3ForCausalLM", Family::qwen3, "model.", false}}};

struct Defaults {
  long long vocab, heads, kv_heads, head_dim, max_positions, window;
  double attention_softcap, final_softcap;
};
Defaults defaults_of(Family family) {
  switch (family) {
    case Family::gemma2:
      return {256000, 8, 4, 256, 8192, 4096, 50.0, 30.0};
    case Family::gemma3:
      return {262208, 8, 4, 256, 131072, 4096, 0.0, 0.0};
    case Family::gemma4:
      return {262144, 8, 4, 256, 131072, 512, 0.0, 0.0};
    case Family::llama:
    case Family::qwen3:  // read_llama has its own
      break;
  }
  return {};
}

const Kind& kind_of(const Section& top) {
  const std::string type = top.text("model_type", "");
  const auto at = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.model_type == type; });
  std::string known;
  for (const Kind& k : kKinds) known += (known.empty() ? "" : ", ") + std::string(k.model_type);
  if (at == kKinds.end())
    top.fail("model_type", "unknown model type", type.empty() ? "nothing" : type, "one of " + known);
  if (const Json* list = top.get("architectures")) {
    const bool ok = list->is_array() && !list->empty() &&
                    std::all_of(list->begin(), list->end(), [&](const Json& a) { return a == at->architecture; });
    if (!ok) top.fail("architectures", "unknown architecture", json_excerpt(*list), std::string(at->architecture));
  }
  return *at;
}

// Things that would change the computation and that no Gemma text model uses.
void refuse_unsupported(const Section& s) {
  const std::string activation = s.text("hidden_activation", "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh")
    s.fail("hidden_activation", "unknown activation", activation, "gelu_pytorch_tanh");
  if (s.flag("attention_bias", false)) s.fail("attention_bias", "attention biases are not supported", "true", "false");
  if (!s.flag("tie_word_embeddings", true))
    s.fail("tie_word_embeddings", "a separate output matrix is not supported", "false", "true");
  if (const Json* q = s.get("quantization_config"))
    s.fail("quantization_config", "quantised weights are not supported", json_excerpt(*q), "f32, bf16 or f16 weights");
  if (const Json* b = s.get("use_bidirectional_attention"); b && *b != false && *b != "vision")
    s.fail("use_bidirectional_attention", "a bidirectional model cannot be trained to continue text", json_excerpt(*b),
           "false or \"vision\"");
}

// Absent means local layers but for every `period`-th.
std::vector<Attention> layer_types(const Section& s, Family family, int layers) {
  std::vector<Attention> out;
  if (const Json* list = s.get("layer_types")) {
    if (!list->is_array() || list->size() != static_cast<size_t>(layers))
      s.fail("layer_types", "wrong length",
             list->is_array() ? std::to_string(list->size()) + " entries" : json_excerpt(*list),
             std::to_string(layers) + " entries, one per layer");
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& type = (*list)[i];
      if (type != "sliding_attention" && type != "full_attention")
        s.fail("layer_types[" + std::to_string(i) + "]", "unknown layer type", json_excerpt(type),
               "sliding_attention or full_attention");
      out.push_back(type == "full_attention" ? Attention::full : Attention::sliding);
    }
  } else {
    const char* key = s.get("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
    const int period = family == Family::gemma3 ? s.size(key, 6, kMaxLayers) : family == Family::gemma2 ? 2 : 6;
    for (int i = 0; i < layers; ++i) out.push_back((i + 1) % period == 0 ? Attention::full : Attention::sliding);
  }
  if (family == Family::gemma4) out.back() = Attention::full;  // transformers forces it too
  return out;
}

struct RopeOf {
  float theta = 10000.0f;
  Rope rope = Rope::plain;
  float factor = 1.0f;
};

RopeOf read_rope(const Section& s, std::optional<double> theta) {
  RopeOf r;
  r.theta = static_cast<float>(s.positive("rope_theta", theta));
  const std::string key = s.get("rope_type") ? "rope_type" : "type";
  const std::string type = s.text(key, "default");
  if (type == "linear") {
    r.rope = Rope::linear;
    r.factor = static_cast<float>(s.positive("factor", std::nullopt));
  } else if (type == "proportional") {
    r.rope = Rope::proportional;
    r.factor = static_cast<float>(s.positive("partial_rotary_factor", 1.0));
    if (r.factor > 1.0f)
      s.fail("partial_rotary_factor", "out of range", std::to_string(r.factor), "a share from above 0 to 1");
    if (s.positive("factor", 1.0) != 1.0)
      s.fail("factor", "proportional RoPE with a further factor is not supported", json_excerpt(*s.get("factor")), "1");
  } else if (type != "default") {
    s.fail(key, "unknown RoPE type", type, "default, linear or proportional");
  }
  return r;
}

struct Ropes {
  RopeOf sliding, full;
};

Ropes read_ropes(const Section& s, Family family, const std::vector<Attention>& types) {
  Ropes r;
  const auto used = [&](Attention a) { return std::find(types.begin(), types.end(), a) != types.end(); };
  if (s.get("rope_parameters")) {
    const Section p = s.object("rope_parameters");
    if (family == Family::gemma2) {  // one set for both kinds
      r.sliding = r.full = read_rope(p, 10000.0);
      return r;
    }
    if (used(Attention::sliding)) r.sliding = read_rope(p.object("sliding_attention"), 10000.0);
    if (used(Attention::full)) r.full = read_rope(p.object("full_attention"), 1000000.0);
    return r;
  }
  if (family == Family::gemma4) {
    r.full = {1000000.0f, Rope::proportional, 0.25f};
    return r;
  }
  // Keys of 2024 and 2025: scaling belongs to the global layers only (Gemma 2 has none).
  if (s.get("rope_scaling")) r.full = read_rope(s.object("rope_scaling"), 1.0);
  r.full.theta = static_cast<float>(s.positive("rope_theta", family == Family::gemma2 ? 10000.0 : 1000000.0));
  if (family == Family::gemma2)
    r.sliding = r.full;
  else
    r.sliding.theta = static_cast<float>(s.positive("rope_local_base_freq", 10000.0));
  return r;
}

// Gemma 4: sizes of global layers, from the keys of the hub files or from per_layer_config (transformers 5 saves).
void global_sizes(const Section& s, std::vector<Layer>& layers) {
  if (const Json* per_layer = s.get("per_layer_config")) {
    const Section all = s.object("per_layer_config");
    for (const auto& [key, unused] : per_layer->items()) {
      const bool digits = !key.empty() && key.size() <= 4 && key.find_first_not_of("0123456789") == std::string::npos;
      if (!digits || static_cast<size_t>(std::stoi(key)) >= layers.size())
        all.fail(key, "not a layer of this model", key, "a layer from 0 to " + std::to_string(layers.size() - 1));
      const Section one = all.object(key);
      for (const auto& [name, value] : one.json().items())
        if (name != "head_dim" && name != "num_key_value_heads")
          one.fail(name, "this override is not supported", json_excerpt(value), "head_dim or num_key_value_heads");
      Layer& l = layers[static_cast<size_t>(std::stoi(key))];
      l.head_dim = one.size("head_dim", l.head_dim, kMaxHeadDim);
      l.kv_heads = one.size("num_key_value_heads", l.kv_heads, kMaxHeads);
    }
    return;
  }
  const int head_dim = s.size("global_head_dim", 512, kMaxHeadDim);
  const bool own_heads = s.flag("attention_k_eq_v", false) && s.get("num_global_key_value_heads");
  for (Layer& l : layers) {
    if (l.attention != Attention::full) continue;
    l.head_dim = head_dim;
    if (own_heads) l.kv_heads = s.size("num_global_key_value_heads", std::nullopt, kMaxHeads);
  }
}

// Gemma 4 E-types: the last layers borrow K and V from the last earlier layer of their kind.
void share_kv(const Section& s, std::vector<Layer>& layers) {
  const int count = static_cast<int>(layers.size());
  const int shared = s.size("num_kv_shared_layers", 0, count - 1, 0);
  const bool wide = s.flag("use_double_wide_mlp", false);
  for (int i = count - shared; i < count; ++i) {
    Layer& l = layers[static_cast<size_t>(i)];
    for (int d = 0; d < count - shared; ++d)
      if (layers[static_cast<size_t>(d)].attention == l.attention) l.kv_donor = d;
    if (l.kv_donor < 0)
      s.fail("num_kv_shared_layers", "no layer to borrow K and V from for layer " + std::to_string(i),
             std::to_string(shared), "an unshared layer of each kind");
    const Layer& donor = layers[static_cast<size_t>(l.kv_donor)];
    if (donor.kv_heads != l.kv_heads || donor.head_dim != l.head_dim)
      s.fail(
          "num_kv_shared_layers",
          "layer " + std::to_string(i) + " borrows K and V of another shape from layer " + std::to_string(l.kv_donor),
          std::to_string(donor.kv_heads) + " x " + std::to_string(donor.head_dim),
          std::to_string(l.kv_heads) + " x " + std::to_string(l.head_dim));
    l.has_k = l.has_v = false;
    if (wide) l.mlp_dim *= 2;
  }
}

void gemma4_extras(const Section& s, Config& c) {
  global_sizes(s, c.layers);
  const bool k_is_v = s.flag("attention_k_eq_v", false);
  for (Layer& l : c.layers) l.has_v = !(k_is_v && l.attention == Attention::full);
  share_kv(s, c.layers);
  c.norm_form = NormForm::plain_w;
  c.v_norm = c.layer_scalar = true;
  c.attention_scale = 1.0f;
  const bool unified = c.hf_model_type.starts_with("gemma4_unified");  // that class has neither PLE nor experts
  c.ple_dim = unified ? 0 : s.size("hidden_size_per_layer_input", 256, kMaxHeadDim, 0);
  const int ple_vocab = c.ple_dim > 0 ? s.size("vocab_size_per_layer_input", 262144, kMaxVocab) : c.vocab;
  if (ple_vocab != c.vocab)
    s.fail("vocab_size_per_layer_input", "differs from vocab_size", std::to_string(ple_vocab), std::to_string(c.vocab));
  if (unified || !s.flag("enable_moe_block", false)) return;
  c.experts = s.size("num_experts", std::nullopt, kMaxExperts);
  c.experts_per_token = s.size("top_k_experts", std::nullopt, c.experts);
  c.expert_dim = s.size("moe_intermediate_size", std::nullopt, kMaxMlp);
}

std::vector<Layer> read_layers(const Section& s, Family family, const Defaults& d) {
  const int count = s.size("num_hidden_layers", std::nullopt, kMaxLayers);
  const std::vector<Attention> types = layer_types(s, family, count);
  const Ropes ropes = read_ropes(s, family, types);
  std::vector<Layer> layers(static_cast<size_t>(count));
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer& l = layers[i];
    l.attention = types[i];
    l.heads = s.size("num_attention_heads", d.heads, kMaxHeads);
    l.kv_heads = s.size("num_key_value_heads", d.kv_heads, kMaxHeads);
    l.head_dim = s.size("head_dim", d.head_dim, kMaxHeadDim);
    l.mlp_dim = s.size("intermediate_size", std::nullopt, kMaxMlp);
    const RopeOf& r = l.attention == Attention::full ? ropes.full : ropes.sliding;
    l.rope_theta = r.theta;
    l.rope = r.rope;
    l.rope_factor = r.factor;
  }
  return layers;
}

float softcap(const Section& s, const std::string& key, double fallback) {
  // Absent: the class default. null: no cap, and that is how transformers writes "none".
  const bool written = s.json().contains(key);
  return written ? static_cast<float>(s.get(key) ? s.positive(key, std::nullopt) : 0.0) : static_cast<float>(fallback);
}

}  // namespace

void check_heads(const Section& s, const std::vector<Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& l = layers[i];
    if (l.heads % l.kv_heads != 0)
      s.fail("num_key_value_heads", "does not divide num_attention_heads in layer " + std::to_string(i),
             std::to_string(l.kv_heads), "a divisor of " + std::to_string(l.heads));
    if (l.head_dim % 2 != 0)
      s.fail("head_dim", "RoPE needs an even head size", std::to_string(l.head_dim), "an even number");
    const long long width = static_cast<long long>(l.heads) * l.head_dim;
    if (width > kMaxMlp)
      s.fail("num_attention_heads", "heads x head_dim is out of range", std::to_string(width),
             "at most " + std::to_string(kMaxMlp));
  }
}

Config from_hf_config(const Json& json, const std::string& file) {
  const Section top(json, file, "");
  const Kind& kind = kind_of(top);
  const Section s = kind.multimodal ? top.object("text_config") : top;
  if (const Json* q = top.get("quantization_config"))
    top.fail("quantization_config", "quantised weights are not supported", json_excerpt(*q),
             "f32, bf16 or f16 weights");

  Config c;
  c.id = std::filesystem::path(file).parent_path().filename().string();
  c.hf_model_type = kind.model_type;
  c.hf_architecture = kind.architecture;
  c.hf_prefix = kind.prefix;
  c.family = kind.family;
  if (planning_only(c)) {
    read_llama(s, c);
    return c;
  }
  refuse_unsupported(s);
  const Defaults d = defaults_of(kind.family);
  c.vocab = s.size("vocab_size", d.vocab, kMaxVocab);
  c.dim = s.size("hidden_size", std::nullopt, kMaxDim);
  const bool unified = kind.model_type.starts_with("gemma4_unified");  // its class has larger defaults
  c.max_positions = s.size("max_position_embeddings", unified ? 262144 : d.max_positions, kMaxPositions);
  c.sliding_window = s.size("sliding_window", unified ? 1024 : d.window, kMaxPositions);
  c.norm_eps = static_cast<float>(s.positive("rms_norm_eps", 1e-6));
  c.layers = read_layers(s, kind.family, d);
  c.final_softcap = softcap(s, "final_logit_softcapping", d.final_softcap);
  c.qk_norm = kind.family != Family::gemma2;
  if (kind.family == Family::gemma4) {
    gemma4_extras(s, c);
  } else {
    c.attention_scale = static_cast<float>(1.0 / std::sqrt(s.positive("query_pre_attn_scalar", 256.0)));
    c.attention_softcap = softcap(s, "attn_logit_softcapping", d.attention_softcap);
  }
  check_heads(s, c.layers);
  return c;
}

}  // namespace mw::model
