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
  return {"gemma2", "gemma3"};
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

// `gemma3`: at least four layers.
inline model::Config as_family(const model::Config& gemma3, std::string_view family) {
  if (family == "gemma2") return as_gemma2(gemma3);
  return gemma3;
}

inline std::string family_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace mw::engine::test
