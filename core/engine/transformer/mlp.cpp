// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/engine/transformer/embedding.h"
#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/projections.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kGrain = 8;

// One expert's part of the work and its matrices.
struct Expert {
  std::int64_t begin, count;  // in routing order
  WeightRef gate, up, down;
  float *d_gate, *d_up, *d_down;  // null unless trained
};

Expert expert_at(const Transformer& net, const LayerWeights& weights, const ExpertRouting& r, std::int64_t e) {
  const std::int64_t f = net.config.expert_dim, d = net.config.dim, gate = 2 * e * f, up = gate + f, down = e * d;
  const auto gradient = [](const Weight& w, std::int64_t row) {
    return w.gradient ? w.gradient + row * w.cols : nullptr;
  };
  return {.begin = r.first[e],
          .count = r.first[e + 1] - r.first[e],
          .gate = slice(weights.experts_gate_up->at, gate, d),
          .up = slice(weights.experts_gate_up->at, up, d),
          .down = slice(weights.experts_down->at, down, f),
          .d_gate = gradient(*weights.experts_gate_up, gate),
          .d_up = gradient(*weights.experts_gate_up, up),
          .d_down = gradient(*weights.experts_down, down)};
}

double expert_flops(const Transformer& net, std::int64_t n) {
  return 6.0 * static_cast<double>(n * net.config.experts_per_token * net.config.expert_dim) * net.config.dim;
}

// The highest of `scores`, highest first (ties: lower index), and the softmax over them alone: what normalising the
// chosen of a softmax over all gives.
void choose(std::span<const float> scores, std::span<int> expert, std::span<float> share) {
  for (size_t j = 0; j < expert.size(); ++j) {
    const auto chosen = expert.first(j);
    int best = -1;
    for (int e = 0; e < static_cast<int>(scores.size()); ++e)
      if ((best < 0 || scores[static_cast<size_t>(e)] > scores[static_cast<size_t>(best)]) &&
          std::find(chosen.begin(), chosen.end(), e) == chosen.end())
        best = e;
    expert[j] = best;
  }
  float sum = 0;
  for (size_t j = 0; j < expert.size(); ++j)
    sum += share[j] = std::exp(scores[static_cast<size_t>(expert[j])] - scores[static_cast<size_t>(expert[0])]);
  for (float& s : share) s /= sum;
}

void route(Transformer& net, std::int64_t n, const float* scores, const ExpertRouting& r) {
  const std::int64_t k = net.config.experts_per_token, experts = net.config.experts;
  net.device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      choose({scores + i * experts, static_cast<size_t>(experts)}, {r.expert + i * k, static_cast<size_t>(k)},
             {r.share + i * k, static_cast<size_t>(k)});
  });
  std::fill_n(r.first, experts + 1, 0);
  for (std::int64_t a = 0; a < n * k; ++a) ++r.first[r.expert[a] + 1];
  for (std::int64_t e = 0; e < experts; ++e) r.first[e + 1] += r.first[e];
  for (std::int64_t a = 0; a < n * k; ++a) r.order[r.first[r.expert[a]]++] = static_cast<int>(a);
  for (std::int64_t e = experts; e > 0; --e) r.first[e] = r.first[e - 1];  // filling moved each to its end
  r.first[0] = 0;
}

void gather_rows(Transformer& net, const ExpertRouting& r, std::int64_t first, std::int64_t count, const float* from,
                 float* to) {
  const std::int64_t d = net.config.dim, k = net.config.experts_per_token;
  net.device.pool.parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(to + i * d, from + r.order[first + i] / k * d, static_cast<size_t>(d) * sizeof(float));
  });
}

// From scratch.d_share, the gradient of share * per_expert_scale.
void router_backward(Transformer& net, const PassContext& pass, int layer, const float* h) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, d = net.config.dim, k = net.config.experts_per_token,
                     experts = net.config.experts;
  const float factor = 1.0f / std::sqrt(static_cast<float>(d));
  Scratch& scratch = net.buffers.step.scratch;
  const ExpertRouting& r = acts.routing;
  std::memset(scratch.scores, 0, static_cast<size_t>(n * experts) * sizeof(float));
  for (std::int64_t first = 0; first < n * k; first += k) {
    float mean = 0;
    for (std::int64_t a = first; a < first + k; ++a) {
      if (float* gradient = weights.per_expert_scale->gradient)
        gradient[r.expert[a]] += scratch.d_share[a] * r.share[a];
      scratch.d_share[a] *= weights.per_expert_scale->at.f32[r.expert[a]];
      mean += r.share[a] * scratch.d_share[a];
    }
    for (std::int64_t a = first; a < first + k; ++a)
      scratch.scores[first / k * experts + r.expert[a]] = r.share[a] * (scratch.d_share[a] - mean);
  }
  const RmsNorm router_norm{n, d, h, weights.router_scale, acts.inv_router};
  if (weights.router->gradient) {
    recompute_norm(net, router_norm, scratch.norm);
    net.gemm.tn({experts, d, n}, scratch.scores, scratch.norm, weights.router->gradient, {.alpha = factor, .beta = 1});
  }
  net.gemm.nn({n, d, experts}, scratch.scores, weights.router->at, scratch.ds, {.alpha = factor});
  norm_backward(net, router_norm, scratch.ds, scratch.dx, StoreMode::accumulate);
}

}  // namespace

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
                StoreMode::write);  // t = d f
  if (weights.router) {
    norm_backward(net, {n, dim, acts.experts, weights.moe_post_norm, acts.inv_moe_post}, scratch.t, scratch.d_experts,
                  StoreMode::write);
    experts_backward(net, pass, layer, h);
    norm_backward(net, {n, dim, acts.dense, weights.dense_post_norm, acts.inv_dense_post}, scratch.t, scratch.t,
                  StoreMode::write);
  }
  // The input m of down_proj is not kept: dm is computed first, then the backward of GeGLU replaces dm by m.
  projection_backward_input(net, pass, {layer, Projection::down}, scratch.t, scratch.m, StoreMode::write);
  {
    const auto timer = net.profile.time(Kernel::geglu);
    net.device.pool.parallel_for(n * mlp, 4096, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.geglu_backward(end - begin, acts.g + begin, acts.u + begin, scratch.m + begin);
    });
  }
  projection_backward_weights(net, pass, {layer, Projection::down}, {scratch.m}, scratch.t);
  const ProjectionInput in = recompute_input(net, pass, {h, weights.pre_ffw_norm, acts.inv_pre_ffw});
  projection_backward_input(net, pass, {layer, Projection::gate}, acts.g, scratch.t, StoreMode::write);  // t = d norm
  projection_backward_weights(net, pass, {layer, Projection::gate}, in, acts.g);
  projection_backward_input(net, pass, {layer, Projection::up}, acts.u, scratch.t, StoreMode::accumulate);
  projection_backward_weights(net, pass, {layer, Projection::up}, in, acts.u);
  sum_block(net, mesh::Block::mlp, layer, n * dim, scratch.t);
  norm_backward(net, {n, dim, h, weights.pre_ffw_norm, acts.inv_pre_ffw}, scratch.t, scratch.dx, StoreMode::accumulate);
}

void experts_block(Transformer& net, const PassContext& pass, int layer, const float* h) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, d = net.config.dim, f = net.config.expert_dim,
                     k = net.config.experts_per_token;
  Scratch& scratch = net.buffers.step.scratch;
  const ExpertRouting& r = acts.routing;
  const auto timer = net.profile.time(Kernel::experts, expert_flops(net, n));
  norm(net, {n, d, h, weights.router_scale, acts.inv_router}, scratch.norm);
  net.gemm.nt({n, net.config.experts, d}, scratch.norm, weights.router->at, scratch.scores,
              {.alpha = 1.0f / std::sqrt(static_cast<float>(d))});
  route(net, n, scratch.scores, r);
  norm(net, {n, d, h, weights.moe_pre_norm, acts.inv_moe_pre}, scratch.norm);
  std::memset(acts.experts, 0, static_cast<size_t>(n * d) * sizeof(float));
  for (std::int64_t e = 0; e < net.config.experts; ++e) {
    const Expert x = expert_at(net, weights, r, e);
    if (x.count == 0) continue;
    float *const g = acts.eg + x.begin * f, *const u = acts.eu + x.begin * f;
    gather_rows(net, r, x.begin, x.count, scratch.norm, scratch.xs);
    net.gemm.nt({x.count, f, d}, scratch.xs, x.gate, g);
    net.gemm.nt({x.count, f, d}, scratch.xs, x.up, u);
    net.kernels.geglu(x.count * f, g, u, scratch.em);
    net.gemm.nt({x.count, d, f}, scratch.em, x.down, scratch.ys);
    net.device.pool.parallel_for(x.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t a = r.order[x.begin + i];
        net.kernels.add(d, scratch.ys + i * d, r.share[a] * weights.per_expert_scale->at.f32[e],
                        acts.experts + a / k * d);
      }
    });
  }
  sum_block(net, mesh::Block::experts, layer, n * d, acts.experts);
}

void experts_backward(Transformer& net, const PassContext& pass, int layer, const float* h) {
  LayerActivations& acts = net.activations(layer);
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, d = net.config.dim, f = net.config.expert_dim,
                     k = net.config.experts_per_token;
  Scratch& scratch = net.buffers.step.scratch;
  const ExpertRouting& r = acts.routing;
  const auto timer = net.profile.time(Kernel::experts, 2 * expert_flops(net, n));
  const RmsNorm pre_norm{n, d, h, weights.moe_pre_norm, acts.inv_moe_pre};
  if (net.weights.full) recompute_norm(net, pre_norm, scratch.norm);
  std::memset(scratch.ds, 0, static_cast<size_t>(n * d) * sizeof(float));
  for (std::int64_t e = 0; e < net.config.experts; ++e) {
    const Expert x = expert_at(net, weights, r, e);
    if (x.count == 0) continue;
    float *const g = acts.eg + x.begin * f, *const u = acts.eu + x.begin * f;
    gather_rows(net, r, x.begin, x.count, scratch.d_experts, scratch.xs);
    net.gemm.nn({x.count, f, d}, scratch.xs, x.down, scratch.dm);
    net.kernels.geglu(x.count * f, g, u, scratch.em);
    for (std::int64_t i = 0; i < x.count; ++i) {  // d of a share: what the expert said along d; then the share itself
      const std::int64_t a = r.order[x.begin + i];
      const float weight = r.share[a] * weights.per_expert_scale->at.f32[e];
      scratch.d_share[a] = static_cast<float>(net.kernels.dot(f, scratch.dm + i * f, scratch.em + i * f));
      net.kernels.scale(f, weight, scratch.dm + i * f);
      if (x.d_down) net.kernels.scale(d, weight, scratch.xs + i * d);
    }
    if (x.d_down) net.gemm.tn({d, f, x.count}, scratch.xs, scratch.em, x.d_down, {.beta = 1});
    net.kernels.geglu_backward(x.count * f, g, u, scratch.dm);
    if (x.d_gate) {
      gather_rows(net, r, x.begin, x.count, scratch.norm, scratch.xs);
      net.gemm.tn({f, d, x.count}, g, scratch.xs, x.d_gate, {.beta = 1});
      net.gemm.tn({f, d, x.count}, u, scratch.xs, x.d_up, {.beta = 1});
    }
    net.gemm.nn({x.count, d, f}, g, x.gate, scratch.ys);
    net.gemm.nn({x.count, d, f}, u, x.up, scratch.ys, {.beta = 1});
    net.device.pool.parallel_for(x.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        net.kernels.add(d, scratch.ys + i * d, 1.0f, scratch.ds + r.order[x.begin + i] / k * d);
    });
  }
  sum_block(net, mesh::Block::experts, layer, n * d, scratch.ds);
  if (net.hooks) net.hooks->sum_router_gradients(layer, {scratch.d_share, static_cast<size_t>(n * k)});
  norm_backward(net, pre_norm, scratch.ds, scratch.dx, StoreMode::accumulate);
  router_backward(net, pass, layer, h);
}

}  // namespace mw::engine
