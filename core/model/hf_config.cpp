// SPDX-License-Identifier: Apache-2.0
// Keys and defaults: transformers configuration_{gemma,gemma2,gemma3,gemma3n,gemma4,gemma4_unified,llama,mistral,qwen3,
// qwen3_moe}.py. The Gemma 3 files on the hub omit keys that equal the default.
#include "core/model/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::model {
namespace {

// --- Reading ---

// These bounds keep every product of sizes below 2^63 and reject absurd sizes before memory is allocated.
constexpr long long kMaxVocab = 1 << 24, kMaxDim = 1 << 18, kMaxMlp = 1 << 20, kMaxLayers = 1024, kMaxHeads = 4096,
                    kMaxHeadDim = 8192, kMaxPositions = 1ll << 30, kMaxExperts = 4096, kMaxStreams = 64;

// Typed and bounded access to one object of a config.json. A null value counts as absent, as in transformers. Errors
// are CONFIG and name file and key.
class ConfigObject {
 public:
  ConfigObject(const Json& json, std::string file, std::string prefix)
      : json_(json), file_(std::move(file)), prefix_(std::move(prefix)) {
    if (!json_.is_object()) fail("", "the configuration is not a JSON object", json_excerpt(json_), "an object");
  }

  const Json* get(const std::string& key) const { return find_member(json_, key); }
  int size(const std::string& key, std::optional<long long> fallback, long long max, long long min = 1) const {
    const Json* value = get(key);
    if (!value && !fallback) fail(key, "a required key is missing", "nothing", "\"" + key + "\"");
    return value ? checked_size(*value, key, max, min) : static_cast<int>(*fallback);
  }
  int checked_size(const Json& value, const std::string& key, long long max, long long min) const {
    const std::string range = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    if (!value.is_number_integer()) fail(key, "wrong type", json_excerpt(value), range);
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max);
    if (huge || value.get<long long>() < min || value.get<long long>() > max)
      fail(key, "out of range", json_excerpt(value), range);
    return static_cast<int>(value.get<long long>());
  }
  // Positive and finite, also after rounding to float.
  double positive(const std::string& key, std::optional<double> fallback) const {
    const Json* value = get(key);
    if (!value && !fallback) fail(key, "a required key is missing", "nothing", "\"" + key + "\"");
    if (!value) return *fallback;
    if (!value->is_number()) fail(key, "wrong type", json_excerpt(*value), "a number");
    const double v = value->get<double>();
    if (!(v > 1e-30 && v < 1e30)) fail(key, "out of range", json_excerpt(*value), "a positive number");
    return v;
  }
  bool flag(const std::string& key, bool fallback) const {
    const Json* value = get(key);
    if (!value) return fallback;
    if (!value->is_boolean()) fail(key, "wrong type", json_excerpt(*value), "true or false");
    return value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& fallback) const {
    const Json* value = get(key);
    if (!value) return fallback;
    if (!value->is_string()) fail(key, "wrong type", json_excerpt(*value), "a string");
    return value->get<std::string>();
  }
  ConfigObject object(const std::string& key) const {
    const Json* value = get(key);
    if (!value) fail(key, "a required key is missing", "nothing", "an object");
    return ConfigObject(*value, file_, prefix_ + key + ".");
  }
  [[noreturn]] void fail(const std::string& key, const std::string& message, const std::string& found,
                         const std::string& expected, const std::string& fix = "") const {
    throw Error("CONFIG", message,
                {.file = file_,
                 .place = key.empty() ? prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1) : prefix_ + key,
                 .found = valid_utf8(found),
                 .expected = expected,
                 .fix = fix});
  }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string file_, prefix_;
};

struct ModelType {  // one value of model_type
  std::string_view model_type, architecture;
  Family family;
  std::string_view prefix;
  bool multimodal;  // the language model is described by text_config
};
constexpr std::array<ModelType, 14> kModelTypes{
    {{"gemma2", "Gemma2ForCausalLM", Family::gemma2, "model.", false},
     {"gemma3_text", "Gemma3ForCausalLM", Family::gemma3, "model.", false},
     {"gemma3", "Gemma3ForConditionalGeneration", Family::gemma3, "language_model.model.", true},
     {"gemma3n_text", "Gemma3nForCausalLM", Family::gemma3n, "model.", false},
     {"gemma3n", "Gemma3nForConditionalGeneration", Family::gemma3n, "model.language_model.", true},
     {"gemma4_text", "Gemma4ForCausalLM", Family::gemma4, "model.", false},
     {"gemma4", "Gemma4ForConditionalGeneration", Family::gemma4, "model.language_model.", true},
     {"gemma4_unified_text", "Gemma4UnifiedForCausalLM", Family::gemma4, "model.", false},
     {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", Family::gemma4, "model.language_model.", true},
     {"llama", "LlamaForCausalLM", Family::llama, "model.", false},
     {"mistral", "MistralForCausalLM", Family::llama, "model.", false},
     {"qwen3", "Qwen3ForCausalLM", Family::qwen3, "model.", false},
     {"qwen3_moe", "Qwen3MoeForCausalLM", Family::qwen3, "model.", false},
     {"gemma", "GemmaForCausalLM", Family::gemma1, "model.", false}}};

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
    case Family::gemma3n:
      return {262400, 8, 2, 256, 32768, 512, 0.0, 30.0};
    case Family::llama:
    case Family::qwen3:
    case Family::gemma1:  // see read_llama
      break;
  }
  return {};
}

const ModelType* find_model_type(std::string_view type) {
  return std::find_if(kModelTypes.begin(), kModelTypes.end(), [&](const ModelType& k) { return k.model_type == type; });
}

const ModelType& model_type_of(const ConfigObject& top) {
  const std::string type = top.text("model_type", "");
  const ModelType* at = find_model_type(type);
  if (at == kModelTypes.end())
    top.fail("model_type", "unknown model type", type.empty() ? "nothing" : type,
             "one of " + joined(kModelTypes, ", ", [](const ModelType& k) { return k.model_type; }));
  if (const Json* list = top.get("architectures")) {
    const bool ok = list->is_array() && !list->empty() &&
                    std::all_of(list->begin(), list->end(), [&](const Json& a) { return a == at->architecture; });
    if (!ok) top.fail("architectures", "unknown architecture", json_excerpt(*list), std::string(at->architecture));
  }
  return *at;
}

// Rejects options that change the computation and that no Gemma text model uses.
void reject_unsupported_gemma_options(const ConfigObject& s) {
  const std::string activation = s.text("hidden_activation", "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh")
    s.fail("hidden_activation", "unknown activation", activation, "gelu_pytorch_tanh");
  if (s.flag("attention_bias", false)) s.fail("attention_bias", "attention biases are not supported", "true", "false");
  if (!s.flag("tie_word_embeddings", true))
    s.fail("tie_word_embeddings", "a separate output matrix is not supported", "false", "true");
  if (const Json* q = s.get("quantization_config"))
    s.fail("quantization_config", "quantised weights are not supported", json_excerpt(*q), "f32, bf16 or f16 weights");
  if (const Json* b = s.get("use_bidirectional_attention"); b && *b != false && *b != "vision")
    s.fail("use_bidirectional_attention", "bidirectional attention is not supported", json_excerpt(*b),
           "false or \"vision\"");
}

// Without layer_types, every `period`-th layer is global and the others are local.
std::vector<Attention> layer_types(const ConfigObject& s, Family family, int layers) {
  std::vector<Attention> out;
  if (const Json* list = s.get("layer_types")) {
    if (!list->is_array() || list->size() != static_cast<size_t>(layers))
      s.fail("layer_types", "wrong length", list->is_array() ? counted(list->size(), "entry") : json_excerpt(*list),
             counted(layers, "entry") + ", one per layer");
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& type = (*list)[i];
      if (type != "sliding_attention" && type != "full_attention")
        s.fail("layer_types[" + std::to_string(i) + "]", "unknown layer type", json_excerpt(type),
               "sliding_attention or full_attention");
      out.push_back(type == "full_attention" ? Attention::full : Attention::sliding);
    }
  } else {
    const char* key = s.get("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
    const int period = family == Family::gemma3    ? s.size(key, 6, kMaxLayers)
                       : family == Family::gemma2  ? 2
                       : family == Family::gemma3n ? 5
                                                   : 6;
    for (int i = 0; i < layers; ++i) out.push_back((i + 1) % period == 0 ? Attention::full : Attention::sliding);
  }
  if (family == Family::gemma4) out.back() = Attention::full;  // as in transformers
  return out;
}

struct RopeSettings {
  float theta = 10000.0f;
  Rope rope = Rope::plain;
  float factor = 1.0f;
};

RopeSettings read_rope(const ConfigObject& s, std::optional<double> theta) {
  RopeSettings r;
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
      s.fail("partial_rotary_factor", "out of range", std::to_string(r.factor), "a fraction above 0 and up to 1");
    if (s.positive("factor", 1.0) != 1.0)
      s.fail("factor", "a scaling factor with proportional RoPE is not supported", json_excerpt(*s.get("factor")), "1");
  } else if (type != "default") {
    s.fail(key, "unknown RoPE type", type, "default, linear or proportional");
  }
  return r;
}

struct LayerRopes {
  RopeSettings sliding, full;
};

LayerRopes read_ropes(const ConfigObject& s, Family family, const std::vector<Attention>& types) {
  LayerRopes r;
  const auto used = [&](Attention a) { return std::find(types.begin(), types.end(), a) != types.end(); };
  if (s.get("rope_parameters")) {
    const ConfigObject p = s.object("rope_parameters");
    if (family == Family::gemma2) {  // the same for local and global layers
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
  // Keys of transformers 4: rope_scaling applies to global layers only (Gemma 2 has none).
  if (s.get("rope_scaling")) r.full = read_rope(s.object("rope_scaling"), 1.0);
  r.full.theta = static_cast<float>(s.positive("rope_theta", family == Family::gemma2 ? 10000.0 : 1000000.0));
  if (family == Family::gemma2)
    r.sliding = r.full;
  else
    r.sliding.theta = static_cast<float>(s.positive("rope_local_base_freq", 10000.0));
  return r;
}

// Gemma 4: sizes of global layers, from global_head_dim and num_global_key_value_heads (files on the hub) or from
// per_layer_config (saved by transformers 5).
void read_global_sizes(const ConfigObject& s, std::vector<Layer>& layers) {
  if (const Json* per_layer = s.get("per_layer_config")) {
    const ConfigObject all = s.object("per_layer_config");
    for (const auto& [key, unused] : per_layer->items()) {
      const bool digits = !key.empty() && key.size() <= 4 && key.find_first_not_of("0123456789") == std::string::npos;
      if (!digits || static_cast<size_t>(std::stoi(key)) >= layers.size())
        all.fail(key, "the model has no such layer", key, "a layer from 0 to " + std::to_string(layers.size() - 1));
      const ConfigObject one = all.object(key);
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

// Gemma 3n, Gemma 4 E2B and E4B: the last layers use the K and V of the last unshared layer of the same attention type.
void read_kv_sharing(const ConfigObject& s, int fallback, std::vector<Layer>& layers) {
  const int count = static_cast<int>(layers.size());
  const int shared = s.size("num_kv_shared_layers", fallback, count - 1, 0);
  const bool wide = s.flag("use_double_wide_mlp", false);
  for (int i = count - shared; i < count; ++i) {
    Layer& l = layers[static_cast<size_t>(i)];
    for (int d = 0; d < count - shared; ++d)
      if (layers[static_cast<size_t>(d)].attention == l.attention) l.kv_donor = d;
    if (l.kv_donor < 0)
      s.fail("num_kv_shared_layers", "layer " + std::to_string(i) + " has no layer to share K and V with",
             std::to_string(shared), "an unshared layer of each attention type");
    const Layer& donor = layers[static_cast<size_t>(l.kv_donor)];
    if (donor.kv_heads != l.kv_heads || donor.head_dim != l.head_dim)
      s.fail("num_kv_shared_layers",
             "layer " + std::to_string(i) + " shares K and V of another shape with layer " + std::to_string(l.kv_donor),
             std::to_string(donor.kv_heads) + " x " + std::to_string(donor.head_dim),
             std::to_string(l.kv_heads) + " x " + std::to_string(l.head_dim));
    l.has_k = l.has_v = false;
    if (wide) l.mlp_dim *= 2;
  }
}

void read_gemma4_options(const ConfigObject& s, Config& c) {
  read_global_sizes(s, c.layers);
  const bool k_is_v = s.flag("attention_k_eq_v", false);
  for (Layer& l : c.layers) l.has_v = !(k_is_v && l.attention == Attention::full);
  read_kv_sharing(s, 0, c.layers);
  c.norm_form = NormForm::plain_w;
  c.v_norm = c.layer_scalar = true;
  c.attention_scale = 1.0f;
  const bool unified =
      c.hf_model_type.starts_with("gemma4_unified");  // this class has neither per-layer embeddings nor experts
  c.ple_dim = unified ? 0 : s.size("hidden_size_per_layer_input", 256, kMaxHeadDim, 0);
  const int ple_vocab = c.ple_dim > 0 ? s.size("vocab_size_per_layer_input", 262144, kMaxVocab) : c.vocab;
  if (ple_vocab != c.vocab)
    s.fail("vocab_size_per_layer_input", "the per-layer vocabulary differs from vocab_size", std::to_string(ple_vocab),
           std::to_string(c.vocab));
  if (unified || !s.flag("enable_moe_block", false)) return;
  c.experts = s.size("num_experts", std::nullopt, kMaxExperts);
  c.experts_per_token = s.size("top_k_experts", std::nullopt, c.experts);
  c.expert_dim = s.size("moe_intermediate_size", std::nullopt, kMaxMlp);
}

// One number for all layers, or a list with one for each: the MLP widths and gate sparsities of Gemma 3n. Calls
// read(value, key, layer).
template <class Read>
void for_each_layer(const ConfigObject& s, const std::string& key, size_t layers, const Read& read) {
  const Json* list = s.get(key);
  if (!list) return;
  if (!list->is_array()) {
    for (size_t i = 0; i < layers; ++i) read(*list, key, i);
    return;
  }
  if (list->size() != layers)
    s.fail(key, "wrong length", counted(list->size(), "entry"), counted(layers, "entry") + ", one per layer");
  for (size_t i = 0; i < layers; ++i) read((*list)[i], key + "[" + std::to_string(i) + "]", i);
}

void read_gemma3n_options(const ConfigObject& s, Config& c) {
  constexpr size_t kSparseLayers = 10;  // by default, of a model with more layers
  for (size_t i = 0; i < kSparseLayers && c.layers.size() > kSparseLayers; ++i) c.layers[i].gate_sparsity = 0.95f;
  for_each_layer(s, "activation_sparsity_pattern", c.layers.size(),
                 [&](const Json& value, const std::string& key, size_t i) {
                   const double share = value.is_number() ? value.get<double>() : -1;
                   if (!(share >= 0 && share < 1))
                     s.fail(key, "out of range", json_excerpt(value), "a share from 0 and below 1");
                   c.layers[i].gate_sparsity = static_cast<float>(share);
                 });
  read_kv_sharing(s, 15, c.layers);
  c.norm_form = NormForm::plain_w;
  c.v_norm = true;
  c.attention_scale = 1.0f;
  c.ple_dim = s.size("hidden_size_per_layer_input", 256, kMaxHeadDim);
  c.ple_vocab = s.size("vocab_size_per_layer_input", 262144, c.vocab);
  c.altup_inputs = s.size("altup_num_inputs", 4, kMaxStreams, 2);
  c.laurel_rank = s.size("laurel_rank", 64, kMaxDim);
}

std::vector<Layer> read_layers(const ConfigObject& s, Family family, const Defaults& d) {
  const int count = s.size("num_hidden_layers", std::nullopt, kMaxLayers);
  const std::vector<Attention> types = layer_types(s, family, count);
  const LayerRopes ropes = read_ropes(s, family, types);
  std::vector<Layer> layers(static_cast<size_t>(count));
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer& l = layers[i];
    l.attention = types[i];
    l.heads = s.size("num_attention_heads", d.heads, kMaxHeads);
    l.kv_heads = s.size("num_key_value_heads", d.kv_heads, kMaxHeads);
    l.head_dim = s.size("head_dim", d.head_dim, kMaxHeadDim);
    if (family != Family::gemma3n) l.mlp_dim = s.size("intermediate_size", std::nullopt, kMaxMlp);
    const RopeSettings& r = l.attention == Attention::full ? ropes.full : ropes.sliding;
    l.rope_theta = r.theta;
    l.rope = r.rope;
    l.rope_factor = r.factor;
  }
  if (family == Family::gemma3n) {
    if (!s.get("intermediate_size"))
      s.fail("intermediate_size", "a required key is missing", "nothing", "\"intermediate_size\"");
    for_each_layer(s, "intermediate_size", layers.size(), [&](const Json& value, const std::string& key, size_t i) {
      layers[i].mlp_dim = s.checked_size(value, key, kMaxMlp, 1);
    });
  }
  return layers;
}

// A missing key means the default; null means no cap.
float read_softcap(const ConfigObject& s, const std::string& key, double fallback) {
  const bool written = s.json().contains(key);
  return written ? static_cast<float>(s.get(key) ? s.positive(key, std::nullopt) : 0.0) : static_cast<float>(fallback);
}

void check_heads(const ConfigObject& s, const std::vector<Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& l = layers[i];
    if (l.heads % l.kv_heads != 0)
      s.fail("num_key_value_heads",
             "num_key_value_heads does not divide num_attention_heads in layer " + std::to_string(i),
             std::to_string(l.kv_heads), "a divisor of " + std::to_string(l.heads));
    if (l.head_dim % 2 != 0)
      s.fail("head_dim", "RoPE needs an even head size", std::to_string(l.head_dim), "an even number");
    const long long width = static_cast<long long>(l.heads) * l.head_dim;
    if (width > kMaxMlp)
      s.fail("num_attention_heads", "num_attention_heads x head_dim is out of range", std::to_string(width),
             "at most " + std::to_string(kMaxMlp));
  }
}

// --- Gemma 1, Llama, Mistral and Qwen3, for planning only ---

void reject_unsupported_llama_options(const ConfigObject& s, Family family) {
  const std::string activation = s.text("hidden_act", family == Family::gemma1 ? "gelu" : "silu");
  const bool known = family == Family::gemma1 ? activation.starts_with("gelu") : activation == "silu";
  if (!known) s.fail("hidden_act", "unknown activation", activation, family == Family::gemma1 ? "gelu" : "silu");
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (s.flag(key, false)) s.fail(key, "biases are not supported", "true", "false");
}

// transformers 5 writes rope_theta into rope_parameters.
float read_rope_theta(const ConfigObject& s) {
  const bool inside = s.get("rope_parameters") != nullptr;
  return static_cast<float>((inside ? s.object("rope_parameters") : s).positive("rope_theta", 10000.0));
}

// Qwen3: with use_sliding_window, the layers from max_window_layers on are local.
void read_sliding_layers(const ConfigObject& s, Config& c) {
  if (!s.flag("use_sliding_window", false)) return;
  c.sliding_window = s.size("sliding_window", 4096, kMaxPositions);
  const auto first = static_cast<size_t>(s.size("max_window_layers", 28, kMaxLayers, 0));
  for (size_t i = first; i < c.layers.size(); ++i) c.layers[i].attention = Attention::sliding;
}

// Mistral: every layer slides if the window is set.
void read_mistral_window(const ConfigObject& s, Config& c) {
  if (s.json().contains("sliding_window") && !s.get("sliding_window")) return;
  c.sliding_window = s.size("sliding_window", 4096, kMaxPositions);
  for (Layer& l : c.layers) l.attention = Attention::sliding;
}

// Qwen3 MoE: experts in every layer, and no dense MLP.
void read_qwen_experts(const ConfigObject& s, Config& c) {
  c.experts = s.size("num_experts", 128, kMaxExperts);
  c.experts_per_token = s.size("num_experts_per_tok", 8, c.experts);
  c.expert_dim = s.size("moe_intermediate_size", 768, kMaxMlp);
  if (s.size("decoder_sparse_step", 1, kMaxLayers) != 1)
    s.fail("decoder_sparse_step", "dense layers between sparse ones are not supported",
           json_excerpt(*s.get("decoder_sparse_step")), "1");
  if (const Json* dense = s.get("mlp_only_layers"); dense && !dense->empty())
    s.fail("mlp_only_layers", "dense layers between sparse ones are not supported", json_excerpt(*dense), "[]");
}

void read_llama(const ConfigObject& s, Config& c) {
  reject_unsupported_llama_options(s, c.family);
  const bool qwen = c.family == Family::qwen3, gemma = c.family == Family::gemma1;
  c.vocab = s.size("vocab_size", qwen ? 151936 : gemma ? 256000 : 32000, kMaxVocab);
  c.dim = s.size("hidden_size", std::nullopt, kMaxDim);
  c.max_positions = s.size("max_position_embeddings", qwen ? 32768 : gemma ? 8192 : 2048, kMaxPositions);
  c.norm_eps = static_cast<float>(s.positive("rms_norm_eps", 1e-6));
  c.norm_form = gemma ? NormForm::one_plus_w : NormForm::plain_w;
  c.qk_norm = qwen;
  c.post_norms = false;
  c.tied_embeddings = s.flag("tie_word_embeddings", gemma);

  Layer l;
  l.attention = Attention::full;
  const bool mistral = c.hf_model_type == "mistral", moe = c.hf_model_type == "qwen3_moe";
  l.heads = s.size("num_attention_heads", gemma ? 16 : 32, kMaxHeads);
  l.kv_heads = s.size("num_key_value_heads", mistral ? 8 : moe ? 4 : qwen ? 32 : l.heads, kMaxHeads);
  const int share = c.dim / l.heads;
  if (!qwen && !gemma && !s.get("head_dim") && share * l.heads != c.dim)
    s.fail("num_attention_heads", "num_attention_heads does not divide hidden_size", std::to_string(l.heads),
           "a divisor of " + std::to_string(c.dim) + ", or a head_dim");
  l.head_dim = s.size("head_dim", qwen ? 128 : gemma ? 256 : share, kMaxHeadDim);
  if (!moe) l.mlp_dim = s.size("intermediate_size", std::nullopt, kMaxMlp);
  l.rope_theta = read_rope_theta(s);
  c.layers.assign(static_cast<size_t>(s.size("num_hidden_layers", std::nullopt, kMaxLayers)), l);
  if (qwen) read_sliding_layers(s, c);
  if (moe) read_qwen_experts(s, c);
  if (mistral) read_mistral_window(s, c);
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(l.head_dim));
  check_heads(s, c.layers);
}

// --- Writing: the keys that transformers 4.57 and 5 both read ---

Json softcap_json(float value) {
  return value > 0 ? Json(shortest_double(value)) : Json(nullptr);
}

// query_pre_attn_scalar, whose inverse square root is the scale; an integer if one gives the same float.
Json query_pre_attn_scalar(float scale) {
  const double exact = 1.0 / (static_cast<double>(scale) * scale);
  const double whole = std::round(exact);
  if (whole >= 1 && whole < 1e9 && static_cast<float>(1.0 / std::sqrt(whole)) == scale)
    return static_cast<long long>(whole);
  return exact;
}

Json rope_json(const Layer& l) {
  Json r{{"rope_theta", shortest_double(l.rope_theta)}};
  r["rope_type"] = l.rope == Rope::linear ? "linear" : l.rope == Rope::proportional ? "proportional" : "default";
  if (l.rope == Rope::linear) r["factor"] = shortest_double(l.rope_factor);
  if (l.rope == Rope::proportional) r["partial_rotary_factor"] = shortest_double(l.rope_factor);
  return r;
}

Json rope_parameters(const Config& c) {
  if (c.family == Family::gemma2) return rope_json(c.layers.front());
  Json all = Json::object();
  for (const Layer& l : c.layers) {
    const char* kind = l.attention == Attention::full ? "full_attention" : "sliding_attention";
    if (!all.contains(kind)) all[kind] = rope_json(l);
  }
  return all;
}

void add_gemma4_keys(const Config& c, Json& j) {
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

Json config_json(const Config& c) {
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
         {"rope_parameters", rope_parameters(c)},
         {"rms_norm_eps", shortest_double(c.norm_eps)},
         {"final_logit_softcapping", softcap_json(c.final_softcap)},
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
    add_gemma4_keys(c, j);
  } else {
    j["query_pre_attn_scalar"] = query_pre_attn_scalar(c.attention_scale);
    j["attn_logit_softcapping"] = softcap_json(c.attention_softcap);
  }
  return j;
}

}  // namespace

void set_model_type(Config& config, std::string_view model_type) {
  const ModelType& kind = *find_model_type(model_type);
  config.hf_model_type = kind.model_type;
  config.hf_architecture = kind.architecture;
  config.hf_prefix = kind.prefix;
  config.family = kind.family;
}

Config from_hf_config(const Json& json, const std::string& file) {
  const ConfigObject top(json, file, "");
  const ModelType& kind = model_type_of(top);
  const ConfigObject s = kind.multimodal ? top.object("text_config") : top;
  if (const Json* q = top.get("quantization_config"))
    top.fail("quantization_config", "quantised weights are not supported", json_excerpt(*q),
             "f32, bf16 or f16 weights");

  Config c;
  c.id = std::filesystem::path(file).parent_path().filename().string();
  set_model_type(c, kind.model_type);
  if (has_llama_layers(c)) {
    read_llama(s, c);
    return c;
  }
  reject_unsupported_gemma_options(s);
  const Defaults d = defaults_of(kind.family);
  c.vocab = s.size("vocab_size", d.vocab, kMaxVocab);
  c.dim = s.size("hidden_size", std::nullopt, kMaxDim);
  const bool unified = kind.model_type.starts_with("gemma4_unified");  // larger defaults
  c.max_positions = s.size("max_position_embeddings", unified ? 262144 : d.max_positions, kMaxPositions);
  c.sliding_window = s.size("sliding_window", unified ? 1024 : d.window, kMaxPositions);
  c.norm_eps = static_cast<float>(s.positive("rms_norm_eps", 1e-6));
  c.layers = read_layers(s, kind.family, d);
  c.final_softcap = read_softcap(s, "final_logit_softcapping", d.final_softcap);
  c.qk_norm = kind.family != Family::gemma2;
  if (kind.family == Family::gemma4) {
    read_gemma4_options(s, c);
  } else if (kind.family == Family::gemma3n) {
    read_gemma3n_options(s, c);
  } else {
    c.attention_scale = static_cast<float>(1.0 / std::sqrt(s.positive("query_pre_attn_scalar", 256.0)));
    c.attention_softcap = read_softcap(s, "attn_logit_softcapping", d.attention_softcap);
  }
  check_heads(s, c.layers);
  return c;
}

Config text_only(Config config) {
  const bool unified = config.hf_model_type.starts_with("gemma4_unified");
  if (config.family == Family::gemma3) set_model_type(config, "gemma3_text");
  if (config.family == Family::gemma3n) set_model_type(config, "gemma3n_text");
  if (config.family == Family::gemma4) set_model_type(config, unified ? "gemma4_unified_text" : "gemma4_text");
  config.hf_prefix = "model.";
  return config;
}

Json to_hf_config(const Config& config) {
  if (is_planning_only(config))
    throw Error("CONFIG", "this model is known for planning only and cannot be saved",
                {.file = config.id, .found = config.hf_model_type, .expected = "a Gemma model"});
  const Config text = text_only(config);
  if (text.layers.empty()) throw Error("CONFIG", "the model has no layers and cannot be saved", {.file = config.id});
  Json json = config_json(text);
  const std::string file = text.id + "/config.json";
  Config back = from_hf_config(json, file);
  back.id = text.id;  // a folder name; not part of the format
  if (!(back == text))
    throw Error("CONFIG", "config.json cannot express this model",
                {.file = file, .found = "layers that differ in properties without a key"});
  return json;
}

}  // namespace mw::model
