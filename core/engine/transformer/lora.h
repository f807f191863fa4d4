// SPDX-License-Identifier: Apache-2.0
// LoRA adapters: which projections get one, with which rank and scaling (the rules of PEFT's LoraConfig), and how they
// are initialised.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/rng.h"
#include "core/engine/layout/model_shape.h"
#include "core/options/adapters.h"

namespace mw::engine {

// The projections of a model that the options adapt, in inventory order. Throws Error LORA for invalid options.
struct ResolvedLora {
  model::LoraTarget target;
  int rank = 0;
  float alpha = 0, scaling = 0;
};
std::vector<ResolvedLora> resolve_lora(const model::TensorInventory& inventory, const options::Lora& options);

struct LoraTensors {  // for checkpoints; A [r,in], B [out,r], magnitudes [out] of DoRA, f32
  model::LoraTarget target;
  int rank;
  float alpha;
  std::span<float> a, b, m;
};

// y += scaling * B (A dropout(x)); with magnitudes then y *= m / norm, by output.
struct Adapter {
  int layer = 0;
  Projection projection{};
  std::int64_t in = 0, out = 0;
  int rank = 0;
  float scaling = 0;
  std::int64_t whole_in = 0, first_in = 0;  // inputs of the whole projection; the device's first one of them
  float *a = nullptr, *b = nullptr;         // [r,in], [out,r]
  float *m = nullptr, *norm = nullptr;      // [out], DoRA: lengths of the rows, and those of W + scaling B A; or null
  float *da = nullptr, *db = nullptr, *dm = nullptr;  // gradients, null until trainable
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
