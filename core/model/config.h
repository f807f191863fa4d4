// SPDX-License-Identifier: Apache-2.0
// Architecture of a decoder-only text model: Gemma, and for planning only Gemma 1, Gemma 3n, Llama, Mistral and Qwen3.
// Plain values.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mw::model {

enum class Family { gemma2, gemma3, gemma4, llama, qwen3, gemma1, gemma3n };  // llama: Mistral, too
enum class Attention { sliding, full };
enum class NormForm { one_plus_w, plain_w };      // Gemma 1/2/3 multiply by (1+w), the others by w
enum class Rope { plain, linear, proportional };  // "default", "linear" (freq / factor), Gemma 4 "proportional"

// One decoder layer, with everything that may differ between layers.
struct Layer {
  Attention attention = Attention::sliding;
  int heads = 0, kv_heads = 0, head_dim = 0;
  int mlp_dim = 0;
  bool has_k = true;  // false: uses the K and V of layer `kv_donor` (Gemma 3n; Gemma 4 E2B/E4B)
  bool has_v = true;  // false with has_k: V equals the K projection (Gemma 4 global layers)
  int kv_donor = -1;
  float rope_theta = 10000.0f;
  Rope rope = Rope::plain;
  float rope_factor = 1.0f;  // linear: divisor of the frequencies; proportional: fraction of rotated pairs
  float gate_sparsity = 0;   // share of the gate's values that are set to zero (Gemma 3n); products stay dense
  bool operator==(const Layer&) const = default;
};

struct Config {
  std::string id;  // catalogue id, or the name of the folder of config.json
  std::string hf_model_type, hf_architecture;
  Family family = Family::gemma3;
  int vocab = 0, dim = 0;
  std::vector<Layer> layers;
  int sliding_window = 0;
  int max_positions = 0;
  float norm_eps = 1e-6f;
  NormForm norm_form = NormForm::one_plus_w;
  bool qk_norm = false, v_norm = false, layer_scalar = false;
  bool post_norms = true;       // norms after attention and MLP in addition to those before (Gemma)
  float attention_scale = 0;    // multiplies q k^T
  float attention_softcap = 0;  // 0: none
  float final_softcap = 0;      // 0: none
  int ple_dim = 0;              // width of the per-layer embeddings (E2B/E4B); 0: none
  int ple_vocab = 0;            // rows of the per-layer embedding, if fewer than `vocab` (Gemma 3n); 0: as many
  int altup_inputs = 0;         // streams of width `dim` between layers, of which AltUp computes one; 0: one stream
  int laurel_rank = 0;          // of the learned residual beside attention (LAuReL, Gemma 3n); 0: none
  int experts = 0, experts_per_token = 0, expert_dim = 0;  // 26B-A4B beside a dense MLP; Qwen3 MoE: instead of one
  bool tied_embeddings = true;                             // false: the output matrix is a tensor of its own, lm_head
  std::string hf_prefix = "model.";  // prefix of the language model's tensors in safetensors files
  bool operator==(const Config&) const = default;
};

// The first layer of this kind, or the first of all if there is none.
inline const Layer& first_of(const Config& config, Attention kind) {
  const auto& layers = config.layers;
  const auto at = std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return l.attention == kind; });
  return at == layers.end() ? layers.front() : *at;
}

// Whether layers have norms before attention and MLP only, as in Llama. RoPE scaling is not read for these models,
// because no size depends on it.
inline bool has_llama_layers(const Config& config) {
  return config.family == Family::llama || config.family == Family::qwen3 || config.family == Family::gemma1;
}
// Whether the model is known for planning only; the engine runs Gemma 2, 3 and 4.
inline bool is_planning_only(const Config& config) {
  return has_llama_layers(config) || config.family == Family::gemma3n;
}
// Streams of width `dim` that pass from layer to layer.
inline int residual_streams(const Config& config) {
  return std::max(1, config.altup_inputs);
}

// How many experts of a layer a number of tokens uses. A pure function; any thread.

// The expected number of distinct experts of one layer that `tokens` tokens choose, if each chooses experts_per_token
// of them independently and evenly: E (1 - (1 - k/E)^n). Between k, for one token, and E. 0 without experts or tokens.
inline double expected_experts(const Config& config, double tokens) {
  if (config.experts <= 0 || tokens <= 0) return 0;
  const double all = config.experts, chosen = std::min<double>(config.experts_per_token, all);
  return all * (1 - std::pow(1 - chosen / all, tokens));
}

}  // namespace mw::model
