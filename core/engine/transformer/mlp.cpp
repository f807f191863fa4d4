// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/mlp.h"

#include <algorithm>

#include "core/engine/transformer/experts.h"
#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/per_layer_inputs.h"
#include "core/engine/transformer/projections.h"

namespace mw::engine {

void gate_activation(Transformer& net, std::int64_t count, const LayerActivations& acts, float* gated) {
  const auto timer = net.profile.time(Kernel::geglu);
  net.device.pool.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.geglu(end - begin, acts.g + begin, acts.u + begin, gated + begin);
  });
}

void mlp_block(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts, const float* h,
               float* out) {
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = net.config.dim;
  Scratch& scratch = net.buffers.step.scratch;
  static constexpr Projection kInto[] = {Projection::gate, Projection::up}, kOut[] = {Projection::down};
  project(net, pass, layer, kInto, {h, weights.pre_ffw_norm, acts.inv_pre_ffw}, acts, scratch.m);
  project(net, pass, layer, kOut, {scratch.m}, acts);
  sum_block(net, mesh::Block::mlp, layer, n * dim, acts.dense);
  if (weights.router) {  // f = dense_post_norm(dense) + moe_post_norm(experts)
    experts_block(net, pass, layer, acts, h);
    norm(net, n, dim, acts.dense, *weights.dense_post_norm, acts.f, acts.inv_dense_post);
    norm_add(net, n, dim, acts.experts, *weights.moe_post_norm, acts.f, acts.f, acts.inv_moe_post);
  }
  norm_add(net, n, dim, acts.f, *weights.post_ffw_norm, h, out, acts.inv_post_ffw);
  if (weights.ple_gate) per_layer_block(net, pass, layer, acts, out);
  if (weights.layer_scalar) scale_values(net, n * dim, *weights.layer_scalar->at.f32, out);
}

void mlp_block_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts, const float* h) {
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = net.config.dim,
                     mlp = net.config.layers[static_cast<size_t>(layer)].mlp_dim;
  Scratch& scratch = net.buffers.step.scratch;
  if (weights.layer_scalar) scale_values(net, n * dim, *weights.layer_scalar->at.f32, scratch.dx);
  if (weights.ple_gate) per_layer_block_backward(net, pass, layer, acts, h);
  norm_backward(net, n, dim, acts.f, *weights.post_ffw_norm, acts.inv_post_ffw, scratch.dx, 0.0f,
                scratch.t);  // t = d f
  if (weights.router) {
    norm_backward(net, n, dim, acts.experts, *weights.moe_post_norm, acts.inv_moe_post, scratch.t, 0.0f,
                  scratch.d_experts);
    experts_backward(net, pass, layer, acts, h);
    norm_backward(net, n, dim, acts.dense, *weights.dense_post_norm, acts.inv_dense_post, scratch.t, 0.0f, scratch.t);
  }
  // The input m of down_proj is not kept: dm is computed first, then the backward of GeGLU replaces dm by m.
  projection_backward_input(net, pass, layer, Projection::down, scratch.t, 0.0f, scratch.m);
  {
    const auto timer = net.profile.time(Kernel::geglu);
    net.device.pool.parallel_for(n * mlp, 4096, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.geglu_backward(end - begin, acts.g + begin, acts.u + begin, scratch.m + begin);
    });
  }
  projection_backward_weights(net, pass, layer, Projection::down, {scratch.m}, scratch.t, acts.z[6]);
  const ProjectionInput in = recompute_input(net, pass, {h, weights.pre_ffw_norm, acts.inv_pre_ffw});
  projection_backward_input(net, pass, layer, Projection::gate, acts.g, 0.0f, scratch.t);  // t = d norm
  projection_backward_weights(net, pass, layer, Projection::gate, in, acts.g, acts.z[4]);
  projection_backward_input(net, pass, layer, Projection::up, acts.u, 1.0f, scratch.t);
  projection_backward_weights(net, pass, layer, Projection::up, in, acts.u, acts.z[5]);
  sum_block(net, mesh::Block::mlp, layer, n * dim, scratch.t);
  norm_backward(net, n, dim, h, *weights.pre_ffw_norm, acts.inv_pre_ffw, scratch.t, 1.0f, scratch.dx);
}

}  // namespace mw::engine
