// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/embedding.h"

#include <algorithm>
#include <cmath>

#include "core/engine/transformer/norms.h"

namespace mw::engine {
namespace {

// Rows a thread takes at least: waking another one for less costs more than it saves, most of all when decoding.
constexpr std::int64_t kGrain = 32;

constexpr std::int64_t kPleGrain = 8;
constexpr float kHalf = 0.70710678f;  // 2^-1/2, of the two parts

// Each device has the gradients of its columns of the per-layer inputs; other columns still hold the inputs.
void sum_per_layer_gradients(Transformer& net, std::int64_t n) {
  const std::int64_t p = net.config.ple_dim, first = net.weights.first_ple(), last = first + net.weights.ple_width();
  for (std::int64_t i = 0; i < n * static_cast<std::int64_t>(net.weights.layers.size()); ++i) {
    std::fill_n(net.buffers.step.ple + i * p, first, 0.0f);
    std::fill_n(net.buffers.step.ple + i * p + last, p - last, 0.0f);
  }
  net.hooks->sum_per_layer_gradients({net.buffers.step.ple, static_cast<size_t>(n * p) * net.weights.layers.size()});
}

}  // namespace

void look_up_row(const Weight& table, const mesh::IndexInterval& own, int id, float* out) {
  if (id >= own.begin && id < own.end)
    widen_row(table.at, table.cols, id - own.begin, 0, table.cols, out);
  else
    std::fill_n(out, table.cols, 0.0f);
}

void embed(Transformer& net, const Tokens& tokens, float* x) {
  const auto timer = net.profile.time(Kernel::embedding);
  const std::int64_t d = net.config.dim;
  const mesh::IndexInterval own = net.vocab_rows();
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
                            const mesh::IndexInterval& own) {
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

// step.ple = (norm(W embedded / sqrt D) + table[ids] * sqrt P) / sqrt 2.
void per_layer_inputs(Transformer& net, const Tokens& tokens, const float* embedded) {
  const std::int64_t n = tokens.count, p = net.config.ple_dim,
                     count = static_cast<std::int64_t>(net.weights.layers.size());
  const std::int64_t all = count * p;
  float* const context = net.buffers.step.scratch.ple;
  {
    const auto timer = net.profile.time(Kernel::projections, 2.0 * static_cast<double>(n * all) * net.config.dim);
    net.gemm.nt({n, all, net.config.dim}, embedded, net.weights.ple_model_proj->at, context,
                {.alpha = 1.0f / std::sqrt(static_cast<float>(net.config.dim))});
  }
  norm(net, {n * count, p, context, net.weights.ple_model_norm, net.buffers.step.ple_inv}, context);
  const auto timer = net.profile.time(Kernel::embedding);
  const mesh::IndexInterval own = net.ple_vocab_rows();
  const auto look_up_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      look_up_row(*net.weights.ple_embedding, own, tokens.ids[static_cast<size_t>(i)], net.buffers.step.ple + i * all);
  };
  if (net.hooks) {
    net.device.pool.parallel_for(n, kPleGrain, look_up_rows);
    net.hooks->sum_per_layer_embedding_rows({net.buffers.step.ple, static_cast<size_t>(n * all)});
  }
  net.device.pool.parallel_for(n, kPleGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* const row = net.buffers.step.ple + i * all;
      if (!net.hooks) look_up_rows(i, i + 1);
      net.kernels.scale(all, net.weights.ple_scale, row);
      net.kernels.add(all, context + i * all, 1.0f, row);
      net.kernels.scale(all, kHalf, row);
    }
  });
}

void per_layer_block(Transformer& net, const PassContext& pass, int layer, float* x) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = net.config.dim, p = net.weights.ple_width();
  const std::int64_t all = static_cast<std::int64_t>(net.weights.layers.size()) * net.config.ple_dim;
  float* const m = net.buffers.step.scratch.pm;
  const float* const input = net.buffers.step.ple + layer * net.config.ple_dim + net.weights.first_ple();
  const auto timer = net.profile.time(Kernel::projections, 4.0 * static_cast<double>(n * dim * p));
  net.gemm.nt({n, p, dim}, x, weights.ple_gate->at, acts.pg);
  net.device.pool.parallel_for(n, kPleGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) net.kernels.geglu(p, acts.pg + i * p, input + i * all, m + i * p);
  });
  net.gemm.nt({n, dim, p}, m, weights.ple_proj->at, acts.p);
  sum_block(net, mesh::Block::ple, layer, n * dim, acts.p);
  norm_add(net, {n, dim, acts.p, weights.post_ple_norm, acts.inv_post_ple}, x, x);
}

void per_layer_block_backward(Transformer& net, const PassContext& pass, int layer, const float* h) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = net.config.dim, p = net.weights.ple_width();
  const std::int64_t all = static_cast<std::int64_t>(net.weights.layers.size()) * net.config.ple_dim;
  Scratch& scratch = net.buffers.step.scratch;
  float* const input = net.buffers.step.ple + layer * net.config.ple_dim + net.weights.first_ple();
  norm_backward(net, {n, dim, acts.p, weights.post_ple_norm, acts.inv_post_ple}, scratch.dx, scratch.t,
                StoreMode::write);  // t = d p
  const auto timer = net.profile.time(Kernel::projections_back, 4.0 * static_cast<double>(n * dim * p));
  net.gemm.nn({n, p, dim}, scratch.t, weights.ple_proj->at, scratch.pm);
  net.device.pool.parallel_for(n, kPleGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      net.kernels.geglu_backward(p, acts.pg + i * p, input + i * all, scratch.pm + i * p);
  });
  if (weights.ple_proj->gradient)
    net.gemm.tn({dim, p, n}, scratch.t, scratch.pm, weights.ple_proj->gradient, {.beta = 1});
  if (net.hooks && net.hooks->splits(mesh::Block::ple, layer)) {
    net.gemm.nn({n, dim, p}, acts.pg, weights.ple_gate->at, scratch.t);
    sum_block(net, mesh::Block::ple, layer, n * dim, scratch.t);
    net.device.pool.parallel_for(n * dim, 4096, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.add(end - begin, scratch.t + begin, 1.0f, scratch.dx + begin);
    });
  } else {
    net.gemm.nn({n, dim, p}, acts.pg, weights.ple_gate->at, scratch.dx, {.beta = 1});
  }
  if (!weights.ple_proj->gradient) return;
  recompute_norm_add(net, {n, dim, acts.f, weights.post_ffw_norm, acts.inv_post_ffw}, h,
                     scratch.t);  // t = the block's input
  net.gemm.tn({p, dim, n}, acts.pg, scratch.t, weights.ple_gate->gradient, {.beta = 1});
}

void per_layer_inputs_backward(Transformer& net, const Tokens& tokens, const float* embedded, float* dx) {
  const std::int64_t n = tokens.count, p = net.config.ple_dim,
                     count = static_cast<std::int64_t>(net.weights.layers.size());
  const std::int64_t all = count * p, dim = net.config.dim;
  const float factor = 1.0f / std::sqrt(static_cast<float>(dim));
  float* const context = net.buffers.step.scratch.ple;
  if (net.hooks) sum_per_layer_gradients(net, n);
  scale_values(net, n * all, kHalf, net.buffers.step.ple);
  add_embedding_gradient(net, tokens, net.buffers.step.ple, net.weights.ple_scale, *net.weights.ple_embedding,
                         net.ple_vocab_rows());
  float* const d = net.buffers.step.ple;
  net.gemm.nt({n, all, dim}, embedded, net.weights.ple_model_proj->at, context, {.alpha = factor});
  norm_backward(net, {n * count, p, context, net.weights.ple_model_norm, net.buffers.step.ple_inv}, d, d,
                StoreMode::write);
  net.gemm.tn({all, dim, n}, d, embedded, net.weights.ple_model_proj->gradient, {.alpha = factor, .beta = 1});
  net.gemm.nn({n, dim, all}, d, net.weights.ple_model_proj->at, dx, {.alpha = factor, .beta = 1});
}

}  // namespace mw::engine
