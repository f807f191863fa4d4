// SPDX-License-Identifier: Apache-2.0
// Per-layer inputs of Gemma 4's E-types: a second embedding and a projection of the first, P numbers per token and
// layer, which every layer gates into its output (transformers modeling_gemma4.py).
#include <algorithm>
#include <cmath>

#include "core/engine/transformer/core.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kGrain = 8;
constexpr float kHalf = 0.70710678f;  // of two parts: 2^-1/2

}  // namespace

// memory.ple = (norm(W embedded / sqrt D) + table[ids] * sqrt P) / sqrt 2.
void Core::per_layer_inputs(const Tokens& tokens, const float* embedded) {
  const std::int64_t n = tokens.count, p = config.ple_dim, count = static_cast<std::int64_t>(layers.size());
  const std::int64_t all = count * p;
  float* const context = memory.scratch.ple;
  {
    const auto timer = profile.time(Kernel::projections, 2.0 * static_cast<double>(n * all) * config.dim);
    gemm.nt(n, all, config.dim, 1.0f / std::sqrt(static_cast<float>(config.dim)), embedded, ple_model_proj->at, 0.0f,
            context);
  }
  norm(n * count, p, context, *ple_model_norm, context, memory.ple_inv);
  const auto timer = profile.time(Kernel::embedding);
  const mesh::Range own = ple_vocab_rows();
  const auto look_up_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      look_up(*ple_embedding, own, tokens.ids[static_cast<size_t>(i)], memory.ple + i * all);
  };
  if (part) {
    device.pool.parallel_for(n, kGrain, look_up_rows);
    part->sum_per_layer_embedding_rows({memory.ple, static_cast<size_t>(n * all)});
  }
  device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* const row = memory.ple + i * all;
      if (!part) look_up_rows(i, i + 1);
      kernels.scale(all, ple_scale, row);
      kernels.add(all, context + i * all, 1.0f, row);
      kernels.scale(all, kHalf, row);
    }
  });
}

// x += post_ple_norm(projection(gelu(gate(x)) * input of the layer)).
void Core::per_layer_block(const Pass& pass, int layer, LayerState& s, float* x) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = config.dim, p = ple_width();
  const std::int64_t all = static_cast<std::int64_t>(layers.size()) * config.ple_dim;
  float* const m = memory.scratch.pm;
  const float* const input = memory.ple + layer * config.ple_dim + first_ple();
  const auto timer = profile.time(Kernel::projections, 4.0 * static_cast<double>(n * dim * p));
  gemm.nt(n, p, dim, 1.0f, x, parts.ple_gate->at, 0.0f, s.pg);
  device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) kernels.geglu(p, s.pg + i * p, input + i * all, m + i * p);
  });
  gemm.nt(n, dim, p, 1.0f, m, parts.ple_proj->at, 0.0f, s.p);
  sum_parts(mesh::Block::ple, layer, n * dim, s.p);
  norm_add(n, dim, s.p, *parts.post_ple_norm, x, x, s.inv_post_ple);
}

// scratch.dx: in d of the block's output, out d of its input. The layer's slice of memory.ple becomes its gradient.
void Core::per_layer_block_backward(const Pass& pass, int layer, LayerState& s, const float* h) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = config.dim, p = ple_width();
  const std::int64_t all = static_cast<std::int64_t>(layers.size()) * config.ple_dim;
  Scratch& c = memory.scratch;
  float* const input = memory.ple + layer * config.ple_dim + first_ple();
  norm_backward(n, dim, s.p, *parts.post_ple_norm, s.inv_post_ple, c.dx, 0.0f, c.t);  // t = d p
  const auto timer = profile.time(Kernel::projections_back, 4.0 * static_cast<double>(n * dim * p));
  gemm.nn(n, p, dim, 1.0f, c.t, parts.ple_proj->at, 0.0f, c.pm);
  device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) kernels.geglu_backward(p, s.pg + i * p, input + i * all, c.pm + i * p);
  });
  if (parts.ple_proj->gradient) gemm.tn(dim, p, n, 1.0f, c.t, c.pm, 1.0f, parts.ple_proj->gradient);
  if (part && part->splits(mesh::Block::ple, layer)) {
    gemm.nn(n, dim, p, 1.0f, s.pg, parts.ple_gate->at, 0.0f, c.t);
    sum_parts(mesh::Block::ple, layer, n * dim, c.t);
    device.pool.parallel_for(n * dim, 4096, [&](std::int64_t begin, std::int64_t end) {
      kernels.add(end - begin, c.t + begin, 1.0f, c.dx + begin);
    });
  } else {
    gemm.nn(n, dim, p, 1.0f, s.pg, parts.ple_gate->at, 1.0f, c.dx);
  }
  if (!parts.ple_proj->gradient) return;
  device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {  // t = the block's input again
    kernels.rms_norm_add_again(end - begin, dim, s.f + begin * dim, parts.post_ffw_norm->gain(), s.inv_post_ffw + begin,
                               h + begin * dim, c.t + begin * dim);
  });
  gemm.tn(p, dim, n, 1.0f, s.pg, c.t, 1.0f, parts.ple_gate->gradient);
}

// Each device has d of its columns of the per-layer inputs; in other columns there still are the inputs.
void Core::sum_per_layer_gradients(std::int64_t n) {
  const std::int64_t p = config.ple_dim, first = first_ple(), last = first + ple_width();
  for (std::int64_t i = 0; i < n * static_cast<std::int64_t>(layers.size()); ++i) {
    std::fill_n(memory.ple + i * p, first, 0.0f);
    std::fill_n(memory.ple + i * p + last, p - last, 0.0f);
  }
  part->sum_per_layer_gradients({memory.ple, static_cast<size_t>(n * p) * layers.size()});
}

// Full training, after all layers: memory.ple holds d of the inputs; dx += the part that goes into the embedding.
void Core::per_layer_inputs_backward(const Tokens& tokens, const float* embedded, float* dx) {
  const std::int64_t n = tokens.count, p = config.ple_dim, count = static_cast<std::int64_t>(layers.size());
  const std::int64_t all = count * p, dim = config.dim;
  const float factor = 1.0f / std::sqrt(static_cast<float>(dim));
  float* const context = memory.scratch.ple;
  if (part) sum_per_layer_gradients(n);
  scale(n * all, kHalf, memory.ple);
  add_rows(tokens, memory.ple, ple_scale, *ple_embedding, ple_vocab_rows());
  gemm.nt(n, all, dim, factor, embedded, ple_model_proj->at, 0.0f, context);
  norm_backward(n * count, p, context, *ple_model_norm, memory.ple_inv, memory.ple, 0.0f, memory.ple);
  gemm.tn(all, dim, n, factor, memory.ple, embedded, 1.0f, ple_model_proj->gradient);
  gemm.nn(n, dim, all, factor, memory.ple, ple_model_proj->at, 1.0f, dx);
}

}  // namespace mw::engine
