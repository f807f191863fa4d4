// SPDX-License-Identifier: Apache-2.0
// Text models as plain data: Gemma, and for planning only Llama and Qwen3. Sources of every constant: catalogue.cpp.
// Any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::model {

enum class Family { gemma2, gemma3, gemma4, llama, qwen3 };
enum class Attention { sliding, full };
enum class NormForm { one_plus_w, plain_w };      // Gemma 2/3 multiply by (1+w), the others by w
enum class Rope { plain, linear, proportional };  // "default", "linear" (freq / factor), Gemma 4 "proportional"

// One decoder layer; everything that may differ from layer to layer stands here.
struct Layer {
  Attention attention = Attention::sliding;
  int heads = 0, kv_heads = 0, head_dim = 0;
  int mlp_dim = 0;
  bool has_k = true;  // false: attends with the K and V of layer `kv_donor` (E2B/E4B)
  bool has_v = true;  // false with has_k: V is the raw K projection (k==v global layers)
  int kv_donor = -1;
  float rope_theta = 10000.0f;
  Rope rope = Rope::plain;
  float rope_factor = 1.0f;  // linear: divisor; proportional: share of rotated pairs
  bool operator==(const Layer&) const = default;
};

struct Config {
  std::string id;  // catalogue id, or the name of the folder that holds config.json
  std::string hf_model_type, hf_architecture;
  Family family = Family::gemma3;
  int vocab = 0, dim = 0;
  std::vector<Layer> layers;
  int sliding_window = 0;
  int max_positions = 0;
  float norm_eps = 1e-6f;
  NormForm norm_form = NormForm::one_plus_w;
  bool qk_norm = false, v_norm = false, layer_scalar = false;
  bool post_norms = true;                                  // after attention and MLP, besides those before (Gemma)
  float attention_scale = 0;                               // multiplies q k^T
  float attention_softcap = 0;                             // 0: none
  float final_softcap = 0;                                 // 0: none
  int ple_dim = 0;                                         // per-layer embeddings (E2B/E4B), 0: none
  int experts = 0, experts_per_token = 0, expert_dim = 0;  // 26B-A4B
  bool tied_embeddings = true;                             // false: an output matrix of its own, lm_head
  std::string hf_prefix = "model.";                        // language-model prefix in the files
  bool operator==(const Config&) const = default;
};

// Llama and Qwen3: known so that their published measurements can be predicted; the engine runs Gemma only. Their RoPE
// is not read beyond theta, for no size depends on it.
bool planning_only(const Config& config);

// All catalogue ids, contract order (gemma2-2b ... gemma4-31b, llama2-7b ... qwen3-32b).
std::vector<std::string> catalogue_ids();
// Throws Error listing the nearest ids when unknown.
Config catalogue(std::string_view id);
// From a config.json (text-only or multimodal with text_config; old and new Gemma 3 style keys). `file` names it in
// errors.
Config from_hf_config(const Json& json, const std::string& file);
// The same language model saved without towers: text model type, ForCausalLM class, prefix "model.". Other fields stay.
Config text_only(Config config);
// The text-only config.json: from_hf_config reads it back to text_only(config), transformers loads it. Throws Error for
// a layer list that the HF format cannot express, and for what is planning only.
Json to_hf_config(const Config& config);

}  // namespace mw::model
