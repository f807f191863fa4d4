// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/rope.h"

#include <cmath>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kTokensPerTask = 32;

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
  const auto index = static_cast<size_t>(net.weights.layer_shapes[static_cast<size_t>(layer)].rope);
  const float* cos = net.buffers.rope_tables[index].data();
  const RopeTable table{cos, cos + net.buffers.rope_positions * (dim / 2)};
  net.device.pool.parallel_for(tokens.count, kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rope({end - begin, heads, dim, tokens.positions.data() + begin}, table, sign, x + begin * heads * dim);
  });
}

}  // namespace mw::engine
