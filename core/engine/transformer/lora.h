// SPDX-License-Identifier: Apache-2.0
// LoRA adapters: which projections get one, with which rank and scaling (the rules of PEFT's LoraConfig), and how they
// are initialised.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/rng.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

struct LoraOptions {
  int rank = 16;
  float alpha = 16, dropout = 0;
  bool rslora = false;               // scaling alpha/sqrt(r) instead of alpha/r
  std::vector<std::string> targets;  // of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj
  // Overrides for modules whose path matches the pattern: the regex matches the whole path, or its end after a dot.
  std::vector<std::pair<std::string, int>> rank_pattern{};
  std::vector<std::pair<std::string, float>> alpha_pattern{};
};

// The projections of a model that the options adapt, in inventory order. Throws Error LORA for invalid options.
struct ResolvedLora {
  model::LoraTarget target;
  int rank = 0;
  float alpha = 0, scaling = 0;
};
std::vector<ResolvedLora> resolve_lora(const model::TensorInventory& inventory, const LoraOptions& options);

struct LoraModule {  // for checkpoints; A [r,in], B [out,r], f32
  model::LoraTarget target;
  int rank;
  float alpha;
  std::span<float> a, b;
};

struct Adapter {  // y += scaling * B (A dropout(x))
  int layer = 0;
  Projection projection{};
  std::int64_t in = 0, out = 0;
  int rank = 0;
  float scaling = 0;
  std::int64_t whole_in = 0, first_in = 0;  // inputs of the whole projection; the device's first one of them
  float *a = nullptr, *b = nullptr;         // [r,in], [out,r]
  float *da = nullptr, *db = nullptr;       // gradients, null until trainable
};

// Initial values of A [r, whole_in], kaiming_uniform(a = sqrt 5) as in PEFT; B starts with zeros.
struct LoraInit {
  LoraInit(std::uint64_t seed, int layer, Projection projection, std::int64_t whole_in);
  float at(std::int64_t element) const {
    return bound * (2.0f * rng.uniform_at(static_cast<std::uint64_t>(element)) - 1.0f);
  }
  Rng rng;
  float bound;
};

}  // namespace mw::engine
