// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/rope.h"

#include <algorithm>
#include <cmath>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kTokensPerTask = 32, kTokensAtOnce = 8;

RopeTable table_of(const Transformer& net, int layer) {
  const std::int64_t dim = net.config.layers[static_cast<size_t>(layer)].head_dim;
  const auto index = static_cast<size_t>(net.weights.layer_shapes[static_cast<size_t>(layer)].rope);
  const float* cos = net.buffers.rope_tables[index].data();
  return {cos, cos + net.buffers.rope_positions * (dim / 2)};
}

}  // namespace

void fill_rope_table(const RopeSpec& spec, std::int64_t positions, float* table) {
  const std::int64_t half = spec.head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    // f32 frequencies and angles, as the reference computes them.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(spec.head_dim);
    const float frequency = i < spec.pairs ? 1.0f / std::pow(spec.theta, exponent) / spec.divisor : 0.0f;
    for (std::int64_t p = 0; p < positions; ++p) {
      const float angle = static_cast<float>(p) * frequency;
      table[p * half + i] = std::cos(angle);
      table[(positions + p) * half + i] = std::sin(angle);
    }
  }
}

void rotate(Transformer& net, const Tokens& tokens, int layer, int heads, float sign, float* x) {
  const auto timer = net.profile.time(Kernel::rope);
  const std::int64_t dim = net.config.layers[static_cast<size_t>(layer)].head_dim;
  const RopeTable table = table_of(net, layer);
  net.device.pool.parallel_for(tokens.count, kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rope({end - begin, heads, dim, tokens.positions.data() + begin}, table, sign, x + begin * heads * dim);
  });
}

void rotate_normed(Transformer& net, const Tokens& tokens, int layer, const RmsNorm& n, NormStatistics statistics,
                   float* y) {
  const auto timer = net.profile.time(Kernel::rope);
  const RopeTable table = table_of(net, layer);
  const std::int64_t heads = tokens.count > 0 ? n.rows / tokens.count : 0;
  const auto normalise = [&](std::int64_t first, std::int64_t rows) {
    const float* const x = n.x + first * n.dim;
    float* const out = y + first * n.dim;
    if (!n.weight)
      std::copy_n(x, rows * n.dim, out);
    else if (statistics == NormStatistics::compute)
      net.kernels.rms_norm({rows, n.dim, x, n.weight->gain()}, net.config.norm_eps, out, n.inv + first);
    else
      net.kernels.recompute_rms_norm({rows, n.dim, x, n.weight->gain()}, n.inv + first, out);
  };
  net.device.pool.parallel_for(tokens.count, kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; t += kTokensAtOnce) {
      const std::int64_t some = std::min(kTokensAtOnce, end - t);
      normalise(t * heads, some * heads);
      net.kernels.rope({some, heads, n.dim, tokens.positions.data() + t}, table, 1.0f, y + t * heads * n.dim);
    }
  });
}

}  // namespace mw::engine
