// SPDX-License-Identifier: Apache-2.0
// Constants of Gemma: transformers configuration_gemma{2,3,4}.py and configuration_gemma4_unified.py with the
// config.json files on the hub, cross-checked with google-deepmind/gemma gm/nn (_gemma.py, gemma4/_gemma4.py) and
// tunix/models. The vocabulary size is the number of embedding rows in the safetensors files. Gemma 1, Llama,
// Mistral and Qwen3: config.json on the hub. Gemma 3n: transformers configuration_gemma3n.py, whose defaults are E4B's,
// and google-ai-edge/ai-edge-torch examples/gemma3n.
#include "core/model/catalogue.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/nearest_names.h"
#include "core/model/hf_config.h"

namespace mw::model {
namespace {

struct Heads {
  int heads, kv_heads, head_dim;
};

Layer layer(Attention attention, Heads h, int mlp_dim, float theta) {
  Layer l;
  l.attention = attention;
  l.heads = h.heads;
  l.kv_heads = h.kv_heads;
  l.head_dim = h.head_dim;
  l.mlp_dim = mlp_dim;
  l.rope_theta = theta;
  return l;
}

// `layers` layers in periods of `period`: local layers and, last in each period, one global layer.
std::vector<Layer> alternate(int layers, int period, const Layer& local, const Layer& global) {
  std::vector<Layer> out;
  for (int i = 0; i < layers; ++i) out.push_back((i + 1) % period == 0 ? global : local);
  return out;
}

Config named(const char* id, std::string_view model_type) {
  Config c;
  c.id = id;
  set_model_type(c, model_type);
  return c;
}

float scale_of(int query_pre_attn_scalar) {
  return static_cast<float>(1.0 / std::sqrt(query_pre_attn_scalar));
}

// --- Gemma 2: local, global, local, ...; window 4096; softcaps 50 and 30 ---

Config gemma2(const char* id, int dim, int mlp_dim, int layers, Heads heads, int query_pre_attn_scalar) {
  Config c = named(id, "gemma2");
  c.vocab = 256000;
  c.dim = dim;
  c.layers = alternate(layers, 2, layer(Attention::sliding, heads, mlp_dim, 10000.0f),
                       layer(Attention::full, heads, mlp_dim, 10000.0f));
  c.sliding_window = 4096;
  c.max_positions = 8192;
  c.attention_scale = scale_of(query_pre_attn_scalar);
  c.attention_softcap = 50.0f;
  c.final_softcap = 30.0f;
  return c;
}

// --- Gemma 3: five local, one global; QK-norm; theta 10k local, 1M global ---

Config gemma3(const char* id, int dim, int mlp_dim, int layers, Heads heads, int query_pre_attn_scalar) {
  Config c = named(id, "gemma3_text");
  c.vocab = 262144;
  c.dim = dim;
  c.layers = alternate(layers, 6, layer(Attention::sliding, heads, mlp_dim, 10000.0f),
                       layer(Attention::full, heads, mlp_dim, 1000000.0f));
  c.sliding_window = 512;
  c.max_positions = 32768;
  c.qk_norm = true;
  c.attention_scale = scale_of(query_pre_attn_scalar);
  return c;
}

// Models with a vision tower: 64 more vocabulary rows (image token and padding), window 1024, 128k positions with
// linear RoPE scaling on global layers, and the tensor prefix of the multimodal files.
Config gemma3_multimodal(const char* id, int dim, int mlp_dim, int layers, Heads heads, int query_pre_attn_scalar) {
  Config c = gemma3(id, dim, mlp_dim, layers, heads, query_pre_attn_scalar);
  set_model_type(c, "gemma3");
  c.vocab = 262208;
  c.sliding_window = 1024;
  c.max_positions = 131072;
  for (Layer& l : c.layers) {
    if (l.attention != Attention::full) continue;
    l.rope = Rope::linear;
    l.rope_factor = 8.0f;
  }
  return c;
}

// --- Gemma 4: norms multiply by w, V-norm, layer scalar, attention scale 1, proportional RoPE on global layers ---

Config gemma4(const char* id, int dim, int mlp_dim, int layers, int period, Heads local, Heads global) {
  Config c = named(id, "gemma4");
  c.vocab = 262144;
  c.dim = dim;
  Layer full = layer(Attention::full, global, mlp_dim, 1000000.0f);
  full.rope = Rope::proportional;
  full.rope_factor = 0.25f;
  c.layers = alternate(layers, period, layer(Attention::sliding, local, mlp_dim, 10000.0f), full);
  c.sliding_window = 1024;
  c.max_positions = 262144;
  c.norm_form = NormForm::plain_w;
  c.qk_norm = c.v_norm = c.layer_scalar = true;
  c.attention_scale = 1.0f;
  c.final_softcap = 30.0f;
  return c;
}

// The last `shared` layers use the K and V of the last layer of the same attention type before them.
void share_kv(Config& c, int shared) {
  const int first_shared = static_cast<int>(c.layers.size()) - shared;
  for (int i = first_shared; i < static_cast<int>(c.layers.size()); ++i) {
    Layer& l = c.layers[static_cast<size_t>(i)];
    l.has_k = l.has_v = false;
    for (int d = 0; d < first_shared; ++d)
      if (c.layers[static_cast<size_t>(d)].attention == l.attention) l.kv_donor = d;
  }
}

// E2B and E4B: per-layer embeddings, 128k positions and shared K and V.
void make_e_type(Config& c, int shared) {
  c.sliding_window = 512;
  c.max_positions = 131072;
  c.ple_dim = 256;
  share_kv(c, shared);
}

// Global layers of 12B, 26B-A4B and 31B have no V projection: V equals the K projection.
void share_k_and_v(Config& c) {
  for (Layer& l : c.layers) l.has_v = l.attention == Attention::sliding;
}

Config gemma4_e2b() {
  Config c = gemma4("gemma4-e2b", 1536, 6144, 35, 5, {8, 1, 256}, {8, 1, 512});
  make_e_type(c, 20);
  for (Layer& l : c.layers)
    if (!l.has_k) l.mlp_dim = 2 * 6144;  // use_double_wide_mlp
  return c;
}
Config gemma4_e4b() {
  Config c = gemma4("gemma4-e4b", 2560, 10240, 42, 6, {8, 2, 256}, {8, 2, 512});
  make_e_type(c, 18);
  return c;
}
Config gemma4_12b() {
  Config c = gemma4("gemma4-12b", 3840, 15360, 48, 6, {16, 8, 256}, {16, 1, 512});
  set_model_type(c, "gemma4_unified");
  share_k_and_v(c);
  return c;
}
Config gemma4_26b_a4b() {
  Config c = gemma4("gemma4-26b-a4b", 2816, 2112, 30, 6, {16, 8, 256}, {16, 2, 512});
  share_k_and_v(c);
  c.experts = 128;
  c.experts_per_token = 8;
  c.expert_dim = 704;
  return c;
}
Config gemma4_31b() {
  Config c = gemma4("gemma4-31b", 5376, 21504, 60, 6, {32, 16, 256}, {32, 4, 512});
  share_k_and_v(c);
  return c;
}

// --- For planning only: decoders with SwiGLU, norms before attention and MLP, and full attention in every layer ---

Config swiglu_decoder(const char* id, const char* type, int dim, int mlp_dim, int layers, Heads heads, float theta) {
  Config c = named(id, type);
  c.dim = dim;
  c.layers.assign(static_cast<size_t>(layers), layer(Attention::full, heads, mlp_dim, theta));
  c.norm_form = NormForm::plain_w;
  c.qk_norm = c.family == Family::qwen3;
  c.post_norms = c.tied_embeddings = false;
  c.attention_scale = scale_of(heads.head_dim);
  return c;
}
Config llama2(const char* id, int dim, int mlp_dim, int layers, Heads heads) {
  Config c = swiglu_decoder(id, "llama", dim, mlp_dim, layers, heads, 10000.0f);
  c.vocab = 32000;
  c.max_positions = 4096;
  c.norm_eps = 1e-5f;
  return c;
}
Config llama3(const char* id, int dim, int mlp_dim, int layers, Heads heads) {
  Config c = swiglu_decoder(id, "llama", dim, mlp_dim, layers, heads, 500000.0f);
  c.vocab = 128256;
  c.max_positions = 131072;
  c.norm_eps = 1e-5f;
  return c;
}

Config tied(Config c) {
  c.tied_embeddings = true;
  return c;
}

Config qwen3(const char* id, int dim, int mlp_dim, int layers, Heads heads) {
  Config c = swiglu_decoder(id, "qwen3", dim, mlp_dim, layers, heads, 1000000.0f);
  c.vocab = 151936;
  c.max_positions = 40960;
  return c;
}
Config qwen3_moe(const char* id, int dim, int expert_dim, int layers, Heads heads) {
  Config c = qwen3(id, dim, 0, layers, heads);
  set_model_type(c, "qwen3_moe");
  c.experts = 128;
  c.experts_per_token = 8;
  c.expert_dim = expert_dim;
  return c;
}

// mistralai/Mistral-7B-v0.1 has a window of 4096 in every layer, v0.3 none and 768 more rows of vocabulary.
Config mistral_7b(const char* id, int vocab, int window, float theta) {
  Config c = swiglu_decoder(id, "mistral", 4096, 14336, 32, {32, 8, 128}, theta);
  c.vocab = vocab;
  c.max_positions = 32768;
  c.norm_eps = 1e-5f;
  c.sliding_window = window;
  if (window > 0)
    for (Layer& l : c.layers) l.attention = Attention::sliding;
  return c;
}

// google/gemma-2b and -7b: as Llama, with GeGLU, norms that multiply by 1 + w, and tied embeddings.
Config gemma1(const char* id, int dim, int mlp_dim, int layers, Heads heads) {
  Config c = swiglu_decoder(id, "gemma", dim, mlp_dim, layers, heads, 10000.0f);
  c.vocab = 256000;
  c.max_positions = 8192;
  c.norm_form = NormForm::one_plus_w;
  c.tied_embeddings = true;
  return c;
}

// Gemma 3n, text part: MatFormer gives E2B the first half of E4B's MLP columns and fewer layers; the first ten layers
// zero 95 % of their gate. The embedding has rows for the soft tokens of images and sound, which the per-layer
// embedding lacks.
Config gemma3n(const char* id, int mlp_dim, int layers, int shared) {
  constexpr int kSparseLayers = 10;
  Config c = named(id, "gemma3n");
  c.vocab = 262400;
  c.dim = 2048;
  c.layers = alternate(layers, 5, layer(Attention::sliding, {8, 2, 256}, mlp_dim, 10000.0f),
                       layer(Attention::full, {8, 2, 256}, mlp_dim, 1000000.0f));
  for (size_t i = 0; i < kSparseLayers; ++i) c.layers[i].gate_sparsity = 0.95f;
  share_kv(c, shared);
  c.sliding_window = 512;
  c.max_positions = 32768;
  c.norm_form = NormForm::plain_w;
  c.qk_norm = c.v_norm = true;
  c.attention_scale = 1.0f;
  c.final_softcap = 30.0f;
  c.ple_dim = 256;
  c.ple_vocab = 262144;
  c.altup_inputs = 4;
  c.laurel_rank = 64;
  return c;
}

const std::vector<Config>& context() {
  static const std::vector<Config> kModels{
      gemma2("gemma2-2b", 2304, 9216, 26, {8, 4, 256}, 256),
      // mlp_dim 14336 as in transformers and google-deepmind/gemma; Tunix has 28672.
      gemma2("gemma2-9b", 3584, 14336, 42, {16, 8, 256}, 256),
      // query_pre_attn_scalar 144 = 4608 / 32, not the head size; likewise 168 = 5376 / 32 of gemma3-27b.
      gemma2("gemma2-27b", 4608, 36864, 46, {32, 16, 128}, 144),
      gemma3("gemma3-270m", 640, 2048, 18, {4, 1, 256}, 256),
      gemma3("gemma3-1b", 1152, 6912, 26, {4, 1, 256}, 256),
      gemma3_multimodal("gemma3-4b", 2560, 10240, 34, {8, 4, 256}, 256),
      gemma3_multimodal("gemma3-12b", 3840, 15360, 48, {16, 8, 256}, 256),
      gemma3_multimodal("gemma3-27b", 5376, 21504, 62, {32, 16, 128}, 168),
      gemma4_e2b(),
      gemma4_e4b(),
      gemma4_12b(),
      gemma4_26b_a4b(),
      gemma4_31b(),
      llama2("llama2-7b", 4096, 11008, 32, {32, 32, 128}),
      llama2("llama2-13b", 5120, 13824, 40, {40, 40, 128}),
      llama2("llama2-70b", 8192, 28672, 80, {64, 8, 128}),
      llama3("llama3.1-8b", 4096, 14336, 32, {32, 8, 128}),
      llama3("llama3.1-70b", 8192, 28672, 80, {64, 8, 128}),
      llama3("llama3.1-405b", 16384, 53248, 126, {128, 8, 128}),
      tied(llama3("llama3.2-1b", 2048, 8192, 16, {32, 8, 64})),
      tied(llama3("llama3.2-3b", 3072, 8192, 28, {24, 8, 128})),
      llama3("llama3.3-70b", 8192, 28672, 80, {64, 8, 128}),
      tied(qwen3("qwen3-0.6b", 1024, 3072, 28, {16, 8, 128})),
      tied(qwen3("qwen3-1.7b", 2048, 6144, 28, {16, 8, 128})),
      tied(qwen3("qwen3-4b", 2560, 9728, 36, {32, 8, 128})),
      qwen3("qwen3-8b", 4096, 12288, 36, {32, 8, 128}),
      qwen3("qwen3-14b", 5120, 17408, 40, {40, 8, 128}),
      qwen3("qwen3-32b", 5120, 25600, 64, {64, 8, 128}),
      qwen3_moe("qwen3-30b-a3b", 2048, 768, 48, {32, 4, 128}),
      qwen3_moe("qwen3-235b-a22b", 4096, 1536, 94, {64, 4, 128}),
      mistral_7b("mistral-7b-v0.1", 32000, 4096, 10000.0f),
      mistral_7b("mistral-7b-v0.3", 32768, 0, 1000000.0f),
      gemma1("gemma1-2b", 2048, 16384, 18, {8, 1, 256}),
      gemma1("gemma1-7b", 3072, 24576, 28, {16, 16, 256}),
      gemma3n("gemma3n-e2b", 8192, 30, 10),
      gemma3n("gemma3n-e4b", 16384, 35, 15),
  };
  return kModels;
}

}  // namespace

std::vector<std::string> catalogue_ids() {
  std::vector<std::string> ids;
  for (const Config& config : context()) ids.push_back(config.id);
  return ids;
}

Config catalogue_config(std::string_view id) {
  for (const Config& config : context())
    if (config.id == id) return config;
  throw Error({.id = "MODEL-ID",
               .message = "unknown model",
               .place = "model.id",
               .found = std::string(id),
               .expected = "a catalogue id; nearest: " + nearest_names_text(id, catalogue_ids()),
               .fix = "choose one of these, or set model.path to a folder with a config.json"});
}

}  // namespace mw::model
