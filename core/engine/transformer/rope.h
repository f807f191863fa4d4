// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings (Su et al. 2021), with the scaled and partial variants of Gemma 3 and 4.
#pragma once
#include <cstdint>

#include "core/engine/runtime/device.h"
#include "core/model/config.h"

namespace mw::engine {

struct Transformer;
struct Tokens;

struct RopeSpec {
  float theta = 0, divisor = 1;  // divisor: of positions
  int head_dim = 0, pairs = 0;   // the first `pairs` of head_dim / 2 pairs rotate
  bool operator==(const RopeSpec&) const = default;
};
RopeSpec rope_spec(const model::Layer& layer);

// Cosines, then sines, [positions, head_dim / 2] each.
Buffer<float> make_rope_table(Device& device, const RopeSpec& spec, int positions);

// Rotates the heads x [tokens, heads, head_dim] in place; sign -1 is the backward.
void rotate(Transformer& net, const Tokens& tokens, int layer, int heads, float sign, float* x);

}  // namespace mw::engine
