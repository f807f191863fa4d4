// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/mlp.h"

#include <algorithm>

#include "core/engine/transformer/experts.h"
#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/per_layer_inputs.h"
#include "core/engine/transformer/projections.h"

namespace mw::engine {

void gate_activation(Transformer& net, const PassContext& pass, int layer, float* gated) {
  const auto timer = net.profile.time(Kernel::geglu);
  const LayerActivations& acts = net.activations(layer);
  const std::int64_t count = std::int64_t{pass.tokens->count} * net.config.layers[static_cast<size_t>(layer)].mlp_dim;
  net.device.pool.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.geglu(end - begin, acts.g + begin, acts.u + begin, gated + begin);
  });
}

void mlp_block(Transformer& net, const PassContext& pass, int layer, const float* h, float* out) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = net.config.dim;
  Scratch& scratch = net.buffers.step.scratch;
  static constexpr Projection kInto[] = {Projection::gate, Projection::up}, kOut[] = {Projection::down};
  project(net, pass, layer, kInto, {h, weights.pre_ffw_norm, acts.inv_pre_ffw}, scratch.m);
  project(net, pass, layer, kOut, {scratch.m});
  sum_block(net, mesh::Block::mlp, layer, n * dim, acts.dense);
  if (weights.router) {  // f = dense_post_norm(dense) + moe_post_norm(experts)
    experts_block(net, pass, layer, h);
    norm(net, {n, dim, acts.dense, weights.dense_post_norm, acts.inv_dense_post}, acts.f);
    norm_add(net, {n, dim, acts.experts, weights.moe_post_norm, acts.inv_moe_post}, acts.f, acts.f);
  }
  norm_add(net, {n, dim, acts.f, weights.post_ffw_norm, acts.inv_post_ffw}, h, out);
  if (weights.ple_gate) per_layer_block(net, pass, layer, out);
  if (weights.layer_scalar) scale_values(net, n * dim, *weights.layer_scalar->at.f32, out);
}

void mlp_block_backward(Transformer& net, const PassContext& pass, int layer, const float* h) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = net.config.dim,
                     mlp = net.config.layers[static_cast<size_t>(layer)].mlp_dim;
  Scratch& scratch = net.buffers.step.scratch;
  if (weights.layer_scalar) scale_values(net, n * dim, *weights.layer_scalar->at.f32, scratch.dx);
  if (weights.ple_gate) per_layer_block_backward(net, pass, layer, h);
  norm_backward(net, {n, dim, acts.f, weights.post_ffw_norm, acts.inv_post_ffw}, scratch.dx, scratch.t,
                Store::write);  // t = d f
  if (weights.router) {
    norm_backward(net, {n, dim, acts.experts, weights.moe_post_norm, acts.inv_moe_post}, scratch.t, scratch.d_experts,
                  Store::write);
    experts_backward(net, pass, layer, h);
    norm_backward(net, {n, dim, acts.dense, weights.dense_post_norm, acts.inv_dense_post}, scratch.t, scratch.t,
                  Store::write);
  }
  // The input m of down_proj is not kept: dm is computed first, then the backward of GeGLU replaces dm by m.
  projection_backward_input(net, pass, {layer, Projection::down}, scratch.t, scratch.m, Store::write);
  {
    const auto timer = net.profile.time(Kernel::geglu);
    net.device.pool.parallel_for(n * mlp, 4096, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.geglu_backward(end - begin, acts.g + begin, acts.u + begin, scratch.m + begin);
    });
  }
  projection_backward_weights(net, pass, {layer, Projection::down}, {scratch.m}, scratch.t);
  const ProjectionInput in = recompute_input(net, pass, {h, weights.pre_ffw_norm, acts.inv_pre_ffw});
  projection_backward_input(net, pass, {layer, Projection::gate}, acts.g, scratch.t, Store::write);  // t = d norm
  projection_backward_weights(net, pass, {layer, Projection::gate}, in, acts.g);
  projection_backward_input(net, pass, {layer, Projection::up}, acts.u, scratch.t, Store::accumulate);
  projection_backward_weights(net, pass, {layer, Projection::up}, in, acts.u);
  sum_block(net, mesh::Block::mlp, layer, n * dim, scratch.t);
  norm_backward(net, {n, dim, h, weights.pre_ffw_norm, acts.inv_pre_ffw}, scratch.t, scratch.dx, Store::accumulate);
}

}  // namespace mw::engine
