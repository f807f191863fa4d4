// SPDX-License-Identifier: Apache-2.0
// Mixture of experts (transformers modeling_gemma4.py): tokens are sorted by expert, each expert works on its rows, and
// what it makes is added back in order of experts, as the reference does.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/engine/transformer/core.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kGrain = 8;

// One expert's part of the work and its matrices.
struct Expert {
  std::int64_t begin, count;  // in routing order
  WeightRef gate, up, down;
  float *d_gate, *d_up, *d_down;  // null unless trained
};

Expert expert_at(const Core& core, const LayerParts& parts, const Routing& r, std::int64_t e) {
  const std::int64_t f = core.config.expert_dim, d = core.config.dim, gate = 2 * e * f, up = gate + f, down = e * d;
  const auto gradient = [](const Weight& w, std::int64_t row) {
    return w.gradient ? w.gradient + row * w.cols : nullptr;
  };
  return {.begin = r.first[e],
          .count = r.first[e + 1] - r.first[e],
          .gate = slice(parts.experts_gate_up->at, gate, d),
          .up = slice(parts.experts_gate_up->at, up, d),
          .down = slice(parts.experts_down->at, down, f),
          .d_gate = gradient(*parts.experts_gate_up, gate),
          .d_up = gradient(*parts.experts_gate_up, up),
          .d_down = gradient(*parts.experts_down, down)};
}

double expert_flops(const Core& core, std::int64_t n) {
  return 6.0 * static_cast<double>(n * core.config.experts_per_token * core.config.expert_dim) * core.config.dim;
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

}  // namespace

void Core::route(std::int64_t n, const float* scores, const Routing& r) {
  const std::int64_t k = config.experts_per_token, experts = config.experts;
  device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
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

void Core::gather_rows(const Routing& r, std::int64_t first, std::int64_t count, const float* from, float* to) {
  const std::int64_t d = config.dim, k = config.experts_per_token;
  device.pool.parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(to + i * d, from + r.order[first + i] / k * d, static_cast<size_t>(d) * sizeof(float));
  });
}

void Core::experts_block(const Pass& pass, int layer, LayerState& s, const float* h) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, d = config.dim, f = config.expert_dim, k = config.experts_per_token;
  Scratch& c = memory.scratch;
  const Routing& r = s.routing;
  const auto timer = profile.time(Kernel::experts, expert_flops(*this, n));
  norm(n, d, h, *parts.router_scale, c.norm, s.inv_router);
  gemm.nt(n, config.experts, d, 1.0f / std::sqrt(static_cast<float>(d)), c.norm, parts.router->at, 0.0f, c.scores);
  route(n, c.scores, r);
  norm(n, d, h, *parts.moe_pre_norm, c.norm, s.inv_moe_pre);
  std::memset(s.experts, 0, static_cast<size_t>(n * d) * sizeof(float));
  for (std::int64_t e = 0; e < config.experts; ++e) {
    const Expert x = expert_at(*this, parts, r, e);
    if (x.count == 0) continue;
    float *const g = s.eg + x.begin * f, *const u = s.eu + x.begin * f;
    gather_rows(r, x.begin, x.count, c.norm, c.xs);
    gemm.nt(x.count, f, d, 1.0f, c.xs, x.gate, 0.0f, g);
    gemm.nt(x.count, f, d, 1.0f, c.xs, x.up, 0.0f, u);
    kernels.geglu(x.count * f, g, u, c.em);
    gemm.nt(x.count, d, f, 1.0f, c.em, x.down, 0.0f, c.ys);
    device.pool.parallel_for(x.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t a = r.order[x.begin + i];
        kernels.add(d, c.ys + i * d, r.share[a] * parts.per_expert_scale->at.f32[e], s.experts + a / k * d);
      }
    });
  }
  sum_parts(mesh::Block::experts, layer, n * d, s.experts);
}

void Core::experts_backward(const Pass& pass, int layer, LayerState& s, const float* h) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, d = config.dim, f = config.expert_dim, k = config.experts_per_token;
  Scratch& c = memory.scratch;
  const Routing& r = s.routing;
  const auto timer = profile.time(Kernel::experts, 2 * expert_flops(*this, n));
  if (full) norm_again(n, d, h, *parts.moe_pre_norm, s.inv_moe_pre, c.norm);
  std::memset(c.ds, 0, static_cast<size_t>(n * d) * sizeof(float));
  for (std::int64_t e = 0; e < config.experts; ++e) {
    const Expert x = expert_at(*this, parts, r, e);
    if (x.count == 0) continue;
    float *const g = s.eg + x.begin * f, *const u = s.eu + x.begin * f;
    gather_rows(r, x.begin, x.count, c.d_experts, c.xs);
    gemm.nn(x.count, f, d, 1.0f, c.xs, x.down, 0.0f, c.dm);
    kernels.geglu(x.count * f, g, u, c.em);
    for (std::int64_t i = 0; i < x.count; ++i) {  // d of a share: what the expert said along d; then the share itself
      const std::int64_t a = r.order[x.begin + i];
      const float weight = r.share[a] * parts.per_expert_scale->at.f32[e];
      c.d_share[a] = static_cast<float>(kernels.dot(f, c.dm + i * f, c.em + i * f));
      kernels.scale(f, weight, c.dm + i * f);
      if (x.d_down) kernels.scale(d, weight, c.xs + i * d);
    }
    if (x.d_down) gemm.tn(d, f, x.count, 1.0f, c.xs, c.em, 1.0f, x.d_down);
    kernels.geglu_backward(x.count * f, g, u, c.dm);
    if (x.d_gate) {
      gather_rows(r, x.begin, x.count, c.norm, c.xs);
      gemm.tn(f, d, x.count, 1.0f, g, c.xs, 1.0f, x.d_gate);
      gemm.tn(f, d, x.count, 1.0f, u, c.xs, 1.0f, x.d_up);
    }
    gemm.nn(x.count, d, f, 1.0f, g, x.gate, 0.0f, c.ys);
    gemm.nn(x.count, d, f, 1.0f, u, x.up, 1.0f, c.ys);
    device.pool.parallel_for(x.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        kernels.add(d, c.ys + i * d, 1.0f, c.ds + r.order[x.begin + i] / k * d);
    });
  }
  sum_parts(mesh::Block::experts, layer, n * d, c.ds);
  if (part) part->sum_router_gradients(layer, {c.d_share, static_cast<size_t>(n * k)});
  norm_backward(n, d, h, *parts.moe_pre_norm, s.inv_moe_pre, c.ds, 1.0f, c.dx);
  router_backward(pass, layer, s, h);
}

// From scratch.d_share, the gradient of share * per_expert_scale.
void Core::router_backward(const Pass& pass, int layer, LayerState& s, const float* h) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, d = config.dim, k = config.experts_per_token, experts = config.experts;
  const float factor = 1.0f / std::sqrt(static_cast<float>(d));
  Scratch& c = memory.scratch;
  const Routing& r = s.routing;
  std::memset(c.scores, 0, static_cast<size_t>(n * experts) * sizeof(float));
  for (std::int64_t first = 0; first < n * k; first += k) {
    float mean = 0;
    for (std::int64_t a = first; a < first + k; ++a) {
      if (float* gradient = parts.per_expert_scale->gradient) gradient[r.expert[a]] += c.d_share[a] * r.share[a];
      c.d_share[a] *= parts.per_expert_scale->at.f32[r.expert[a]];
      mean += r.share[a] * c.d_share[a];
    }
    for (std::int64_t a = first; a < first + k; ++a)
      c.scores[first / k * experts + r.expert[a]] = r.share[a] * (c.d_share[a] - mean);
  }
  if (parts.router->gradient) {
    norm_again(n, d, h, *parts.router_scale, s.inv_router, c.norm);
    gemm.tn(experts, d, n, factor, c.scores, c.norm, 1.0f, parts.router->gradient);
  }
  gemm.nn(n, d, experts, factor, c.scores, parts.router->at, 0.0f, c.ds);
  norm_backward(n, d, h, *parts.router_scale, s.inv_router, c.ds, 1.0f, c.dx);
}

}  // namespace mw::engine
