// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings (Su et al. 2021), with the scaled and partial variants of Gemma 3 and 4.
#pragma once
#include <cstdint>

#include "core/engine/layout/model_shape.h"
#include "core/engine/transformer/norms.h"

namespace mw::engine {

struct Transformer;
struct Tokens;

// Fills a table of cosines, then sines, [positions, head_dim / 2] each.
void fill_rope_table(const RopeSpec& spec, std::int64_t positions, float* table);

// Rotates the heads x [tokens, heads, head_dim] in place; sign -1 is the backward.
void rotate(Transformer& net, const Tokens& tokens, int layer, int heads, float sign, float* x);

// y = the rotated norm of heads n.x [tokens, heads, head_dim], token by token while they are in cache. The norm's
// statistics are computed, or reused for the same bits.
enum class NormStatistics { compute, reuse };
void rotate_normed(Transformer& net, const Tokens& tokens, int layer, const RmsNorm& n, NormStatistics statistics,
                   float* y);

}  // namespace mw::engine
