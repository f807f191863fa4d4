// SPDX-License-Identifier: Apache-2.0
// config.json of Llama 2, 3 and Qwen3, for planning. Defaults: transformers configuration_llama.py,
// configuration_qwen3.py.
#include <cmath>

#include "core/model/hf_section.h"

namespace mw::model {
namespace {

void refuse_unsupported_llama(const Section& s) {
  if (const std::string activation = s.text("hidden_act", "silu"); activation != "silu")
    s.fail("hidden_act", "unknown activation", activation, "silu");
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (s.flag(key, false)) s.fail(key, "biases are not supported", "true", "false");
}

// transformers 5 keeps theta in rope_parameters.
float theta_of(const Section& s) {
  const bool inside = s.get("rope_parameters") != nullptr;
  return static_cast<float>((inside ? s.object("rope_parameters") : s).positive("rope_theta", 10000.0));
}

// Qwen3: from max_window_layers on, where the window is used at all.
void slide(const Section& s, Config& c) {
  if (!s.flag("use_sliding_window", false)) return;
  c.sliding_window = s.size("sliding_window", 4096, kMaxPositions);
  const auto first = static_cast<size_t>(s.size("max_window_layers", 28, kMaxLayers, 0));
  for (size_t i = first; i < c.layers.size(); ++i) c.layers[i].attention = Attention::sliding;
}

}  // namespace

void read_llama(const Section& s, Config& c) {
  refuse_unsupported_llama(s);
  const bool qwen = c.family == Family::qwen3;
  c.vocab = s.size("vocab_size", qwen ? 151936 : 32000, kMaxVocab);
  c.dim = s.size("hidden_size", std::nullopt, kMaxDim);
  c.max_positions = s.size("max_position_embeddings", qwen ? 32768 : 2048, kMaxPositions);
  c.norm_eps = static_cast<float>(s.positive("rms_norm_eps", 1e-6));
  c.norm_form = NormForm::plain_w;
  c.qk_norm = qwen;
  c.post_norms = false;
  c.tied_embeddings = s.flag("tie_word_embeddings", false);

  Layer l;
  l.attention = Attention::full;
  l.heads = s.size("num_attention_heads", 32, kMaxHeads);
  l.kv_heads = s.size("num_key_value_heads", qwen ? 32 : l.heads, kMaxHeads);
  const int share = c.dim / l.heads;
  if (!qwen && !s.get("head_dim") && share * l.heads != c.dim)
    s.fail("num_attention_heads", "does not divide hidden_size", std::to_string(l.heads),
           "a divisor of " + std::to_string(c.dim) + ", or a head_dim");
  l.head_dim = s.size("head_dim", qwen ? 128 : share, kMaxHeadDim);
  l.mlp_dim = s.size("intermediate_size", std::nullopt, kMaxMlp);
  l.rope_theta = theta_of(s);
  c.layers.assign(static_cast<size_t>(s.size("num_hidden_layers", std::nullopt, kMaxLayers)), l);
  if (qwen) slide(s, c);
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(l.head_dim));
  check_heads(s, c.layers);
}

}  // namespace mw::model
