// SPDX-License-Identifier: GPL-3.0-or-later
// Models of a few thousand parameters.
#pragma once
#include "core/model/catalogue.h"
#include "core/model/config.h"
#include "core/model/hf_config.h"

namespace mw::formats {

// Catalogue models with tiny sizes and unchanged layers and heads.
inline model::Config shrunk(const char* id, size_t layers) {
  model::Config c = model::text_only(model::catalogue_config(id));
  c.id = "tiny";
  c.vocab = 11;
  c.dim = 8;
  c.layers.resize(layers);
  for (model::Layer& l : c.layers) {
    l.head_dim = 4;
    l.mlp_dim = 12;
  }
  return c;
}

inline model::Config tiny_gemma3() {
  return shrunk("gemma3-270m", 2);
}

// Layers 2 and 3 use the K and V of 0 and 1.
inline model::Config tiny_gemma4_e() {
  model::Config c = shrunk("gemma4-e2b", 4);
  c.ple_dim = 4;
  for (size_t i = 0; i < 4; ++i) {
    c.layers[i].attention = i % 2 ? model::Attention::full : model::Attention::sliding;
    c.layers[i].has_k = c.layers[i].has_v = i < 2;
    c.layers[i].kv_donor = i < 2 ? -1 : static_cast<int>(i) - 2;
  }
  return c;
}

}  // namespace mw::formats
