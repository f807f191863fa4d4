// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/embedding.h"

#include <algorithm>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {
namespace {

// Rows a thread takes at least: waking another one for less costs more than it saves, most of all when decoding.
constexpr std::int64_t kGrain = 32;

}  // namespace

void look_up_row(const Weight& table, const mesh::Range& own, int id, float* out) {
  if (id >= own.begin && id < own.end)
    widen_row(table.at, table.cols, id - own.begin, 0, table.cols, out);
  else
    std::fill_n(out, table.cols, 0.0f);
}

void embed(Transformer& net, const Tokens& tokens, float* x) {
  const auto timer = net.profile.time(Kernel::embedding);
  const std::int64_t d = net.config.dim;
  const mesh::Range own = net.vocab_rows();
  net.device.pool.parallel_for(tokens.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      look_up_row(*net.weights.embedding, own, tokens.ids[static_cast<size_t>(i)], x + i * d);
      net.kernels.scale(d, net.weights.embed_scale, x + i * d);
    }
  });
  if (net.hooks) net.hooks->sum_embedding_rows({x, static_cast<size_t>(tokens.count * d)});
}

// The gradient of a look-up, by columns: one writer, one order.
void add_embedding_gradient(Transformer& net, const Tokens& tokens, const float* dx, float factor, Weight& table,
                            const mesh::Range& own) {
  const auto timer = net.profile.time(Kernel::embedding);
  net.device.pool.parallel_for(table.cols, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < tokens.count; ++i) {
      const int id = tokens.ids[static_cast<size_t>(i)];
      if (id < own.begin || id >= own.end) continue;
      net.kernels.add(end - begin, dx + i * table.cols + begin, factor,
                      table.gradient + (id - own.begin) * table.cols + begin);
    }
  });
}

}  // namespace mw::engine
