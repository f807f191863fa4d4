// SPDX-License-Identifier: GPL-3.0-or-later
// Small models of every architecture, made from a small Gemma 3: each kind of layer its family has.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"

namespace mw::engine::test {

inline std::vector<std::string> families() {
  return {"gemma2", "gemma3", "gemma4", "gemma4_e", "gemma4_moe"};
}

// Softcaps that bite, no norms on heads.
inline model::Config as_gemma2(model::Config c) {
  c.family = model::Family::gemma2;
  c.hf_model_type = "gemma2";
  c.hf_architecture = "Gemma2ForCausalLM";
  c.qk_norm = false;
  c.attention_softcap = 2.0f, c.final_softcap = 5.0f;
  for (size_t i = 0; i < c.layers.size(); ++i) {
    model::Layer& l = c.layers[i];
    l.attention = i % 2 == 1 ? model::Attention::full : model::Attention::sliding;
    l.rope = model::Rope::plain, l.rope_factor = 1.0f, l.rope_theta = 1e4f;
  }
  return c;
}

// As 12B and 31B: plain norms, norms without weights on values, wide global heads whose values are their raw keys,
// partly rotated.
inline model::Config as_gemma4(model::Config c) {
  c.family = model::Family::gemma4;
  c.hf_model_type = "gemma4_text";
  c.hf_architecture = "Gemma4ForCausalLM";
  c.norm_form = model::NormForm::plain_w;
  c.v_norm = c.layer_scalar = true;
  c.attention_scale = 1.0f;
  c.final_softcap = 5.0f;
  for (size_t i = 0; i < c.layers.size(); ++i) {
    model::Layer& l = c.layers[i];
    const bool full = i % 2 == 1;
    l.attention = full ? model::Attention::full : model::Attention::sliding;
    l.rope = full ? model::Rope::proportional : model::Rope::plain;
    l.rope_factor = full ? 0.25f : 1.0f, l.rope_theta = full ? 1e6f : 1e4f;
    if (full) l.kv_heads = 1, l.head_dim *= 2, l.has_v = false;
  }
  return c;
}

// As E2B: per-layer inputs; the upper half borrows keys and values and has a wider MLP.
inline model::Config as_gemma4_e(const model::Config& gemma3) {
  model::Config c = as_gemma4(gemma3);
  c.ple_dim = 6;
  const size_t half = c.layers.size() / 2 / 2 * 2;
  for (size_t i = 0; i < c.layers.size(); ++i) {
    model::Layer& l = c.layers[i];
    l.has_v = l.has_k = i < half;
    l.kv_heads = gemma3.layers[i].kv_heads;
    if (!l.has_k) l.kv_donor = static_cast<int>(half - 2 + i % 2), l.mlp_dim *= 2;
  }
  return c;
}

// As 26B-A4B: a router and experts beside each dense MLP.
inline model::Config as_gemma4_moe(const model::Config& gemma3) {
  model::Config c = as_gemma4(gemma3);
  c.experts = 5, c.experts_per_token = 2, c.expert_dim = 18;
  return c;
}

// `gemma3`: at least four layers.
inline model::Config as_family(const model::Config& gemma3, std::string_view family) {
  if (family == "gemma2") return as_gemma2(gemma3);
  if (family == "gemma4") return as_gemma4(gemma3);
  if (family == "gemma4_e") return as_gemma4_e(gemma3);
  if (family == "gemma4_moe") return as_gemma4_moe(gemma3);
  return gemma3;
}

inline std::string family_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace mw::engine::test
