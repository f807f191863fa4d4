// SPDX-License-Identifier: Apache-2.0
// The backward of every layer, from scratch.dx = d loss / d output. What is cheap to compute again (norms, RoPE,
// GeGLU) always is; whole blocks are when remat says so, by the forward's own code, hence the same bits.
#include <cstring>

#include "core/engine/transformer/core.h"

namespace mw::engine {

using mesh::Phase;

namespace {

constexpr std::int64_t kGrain = 8;

}  // namespace

void Core::norm_backward(std::int64_t rows, std::int64_t dim, const float* x, Weight& w, const float* inv,
                         const float* dy, float keep, float* dx) {
  const auto timer = profile.time(Kernel::norms);
  if (w.gradient)
    device.pool.parallel_for(dim, 16, [&](std::int64_t begin, std::int64_t end) {
      kernels.rms_norm_weight(rows, dim, x, inv, dy, begin, end, w.gradient);
    });
  device.pool.parallel_for(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.rms_norm_backward(end - begin, dim, x + begin * dim, w.gain(), inv + begin, dy + begin * dim, keep,
                              dx + begin * dim);
  });
}

void Core::norm_again(std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, const float* inv,
                      float* y) {
  const auto timer = profile.time(Kernel::norms);
  device.pool.parallel_for(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.rms_norm_again(end - begin, dim, x + begin * dim, w.gain(), inv + begin, y + begin * dim);
  });
}

void Core::head_norm_again(std::int64_t rows, std::int64_t dim, const float* x, const Weight* w, const float* inv,
                           float* y) {
  if (w)
    norm_again(rows, dim, x, *w, inv, y);
  else
    std::memcpy(y, x, static_cast<size_t>(rows * dim) * sizeof(float));
}

// In place: d of the normed heads to d of the raw ones.
void Core::head_norm_backward(std::int64_t rows, std::int64_t dim, const float* x, Weight* w, const float* inv,
                              float* d) {
  if (w) norm_backward(rows, dim, x, *w, inv, d, 0.0f, d);
}

// scratch.dx: in d out, out d h.
void Core::mlp_backward(const Pass& pass, int layer, LayerState& s, const float* h) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = config.dim, mlp = config.layers[static_cast<size_t>(layer)].mlp_dim;
  Scratch& c = memory.scratch;
  if (parts.layer_scalar) scale(n * dim, *parts.layer_scalar->at.f32, c.dx);
  if (parts.ple_gate) per_layer_block_backward(pass, layer, s, h);
  norm_backward(n, dim, s.f, *parts.post_ffw_norm, s.inv_post_ffw, c.dx, 0.0f, c.t);  // t = d f
  if (parts.router) {
    norm_backward(n, dim, s.experts, *parts.moe_post_norm, s.inv_moe_post, c.t, 0.0f, c.d_experts);
    experts_backward(pass, layer, s, h);
    norm_backward(n, dim, s.dense, *parts.dense_post_norm, s.inv_dense_post, c.t, 0.0f, c.t);
  }
  // down's own input is not kept: d m first, then GeGLU's backward leaves m where d m was.
  linear_backward_input(pass, layer, Projection::down, c.t, 0.0f, c.m);
  {
    const auto timer = profile.time(Kernel::geglu);
    device.pool.parallel_for(n * mlp, 4096, [&](std::int64_t begin, std::int64_t end) {
      kernels.geglu_backward(end - begin, s.g + begin, s.u + begin, c.m + begin);
    });
  }
  linear_backward_weights(pass, layer, Projection::down, {c.m}, c.t, s.z[6]);
  const Input in = input_again(pass, {h, parts.pre_ffw_norm, s.inv_pre_ffw});
  linear_backward_input(pass, layer, Projection::gate, s.g, 0.0f, c.t);  // t = d norm
  linear_backward_weights(pass, layer, Projection::gate, in, s.g, s.z[4]);
  linear_backward_input(pass, layer, Projection::up, s.u, 1.0f, c.t);
  linear_backward_weights(pass, layer, Projection::up, in, s.u, s.z[5]);
  sum_parts(mesh::Block::mlp, layer, n * dim, c.t);
  norm_backward(n, dim, h, *parts.pre_ffw_norm, s.inv_pre_ffw, c.t, 1.0f, c.dx);
}

void Core::keys_and_values_again(const Pass& pass, int layer, LayerState& s) {
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t heads = std::int64_t{pass.tokens->count} * l.kv_heads;
  head_norm_again(heads, l.head_dim, s.k, parts.k_norm, s.inv_k, s.kh);
  rotate(*pass.tokens, layer, l.kv_heads, 1.0f, s.kh);
  if (s.vh != s.v) head_norm_again(heads, l.head_dim, s.v, parts.v_norm, s.inv_v, s.vh);
}

// In place: d of what attention reads to d of the raw projections. Without v_proj both come together in d k.
void Core::keys_and_values_backward(const Pass& pass, int layer, LayerState& s) {
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t heads = std::int64_t{pass.tokens->count} * l.kv_heads;
  rotate(*pass.tokens, layer, l.kv_heads, -1.0f, s.dkh);
  head_norm_backward(heads, l.head_dim, s.k, parts.k_norm, s.inv_k, s.dkh);
  head_norm_backward(heads, l.head_dim, s.v, parts.v_norm, s.inv_v, s.dvh);
  if (!l.has_v)
    device.pool.parallel_for(heads * l.head_dim, 4096, [&](std::int64_t begin, std::int64_t end) {
      kernels.add(end - begin, s.dvh + begin, 1.0f, s.dkh + begin);
    });
}

// scratch.dx: in d h, out d x (when the layer below wants it).
void Core::attention_block_backward(const Pass& pass, int layer, LayerState& s, bool wants_dx) {
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const Tokens& tokens = *pass.tokens;
  const std::int64_t n = tokens.count, dim = config.dim;
  Scratch& c = memory.scratch;
  norm_backward(n, dim, s.a, *parts.post_attention_norm, s.inv_post_attention, c.dx, 0.0f, c.t);  // t = d a
  linear_backward_input(pass, layer, Projection::o, c.t, 0.0f, c.dq);
  linear_backward_weights(pass, layer, Projection::o, {s.o}, c.t, s.z[3]);
  head_norm_again(n * l.heads, l.head_dim, s.q, parts.q_norm, s.inv_q, c.qh);
  rotate(tokens, layer, l.heads, 1.0f, c.qh);
  if (l.has_k && !parts.lends) keys_and_values_again(pass, layer, s);  // lent ones are still there
  const Into how = s.dkh == c.dk ? Into::overwrite : Into::add;        // lent ones collect from every borrower
  attention_backward(pass, layer, c.qh, s.kh, s.vh, s.o, s.lse, c.dq, how, s.dkh, s.dvh);
  rotate(tokens, layer, l.heads, -1.0f, c.dq);
  head_norm_backward(n * l.heads, l.head_dim, s.q, parts.q_norm, s.inv_q, c.dq);
  if (l.has_k) keys_and_values_backward(pass, layer, s);
  const Input in = input_again(pass, {s.x, parts.input_norm, s.inv_input});
  const auto through = [&](Projection p, const float* dy, const float* z, float keep) {
    if (wants_dx) linear_backward_input(pass, layer, p, dy, keep, c.t);
    linear_backward_weights(pass, layer, p, in, dy, z);
  };
  through(Projection::q, c.dq, s.z[0], 0.0f);
  if (l.has_k) through(Projection::k, s.dkh, s.z[1], 1.0f);
  if (l.has_v) through(Projection::v, s.dvh, s.z[2], 1.0f);
  if (!wants_dx) return;
  sum_parts(mesh::Block::attention, layer, n * dim, c.t);
  norm_backward(n, dim, s.x, *parts.input_norm, s.inv_input, c.t, 1.0f, c.dx);
}

// h = x + post_attention_norm(a), bitwise as the forward wrote it.
void Core::residual_again(std::int64_t n, int layer, const LayerState& s, float* h) {
  const auto timer = profile.time(Kernel::norms);
  const std::int64_t dim = config.dim;
  const NormGain w = layers[static_cast<size_t>(layer)].post_attention_norm->gain();
  device.pool.parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.rms_norm_add_again(end - begin, dim, s.a + begin * dim, w, s.inv_post_attention + begin, s.x + begin * dim,
                               h + begin * dim);
  });
}

void Core::backward(const Pass& pass) {
  const std::int64_t n = pass.tokens->count;
  const model::Remat remat = memory.shape.remat;
  float* const h = memory.scratch.h;
  for (size_t layer = static_cast<size_t>(memory.shape.lowest); layer < layers.size(); ++layer) {
    if (!layers[layer].lends) continue;
    const model::Layer& l = config.layers[layer];
    const auto floats = static_cast<size_t>(n * l.kv_heads * l.head_dim);
    for (float* d : {memory.layers[layer].dkh, memory.layers[layer].dvh}) std::memset(d, 0, floats * sizeof(float));
  }
  for (int layer = static_cast<int>(layers.size()) - 1; layer >= memory.shape.lowest; --layer) {
    LayerState& s = memory.layers[static_cast<size_t>(layer)];
    memory.scratch.dz_of = nullptr;
    const bool wants_dx = full || layer > memory.shape.lowest;
    enter_storage(layer, Phase::backward);
    enter_phase(Phase::recompute);
    switch (remat) {
      case model::Remat::none:
        residual_again(n, layer, s, h);
        break;
      case model::Remat::block:
        mlp_block(pass, layer, s, s.h, memory.scratch.t);
        break;
      case model::Remat::layer:
        attention_block(pass, layer, s, h);
        mlp_block(pass, layer, s, h, memory.scratch.t);
        break;
    }
    enter_phase(Phase::backward);
    mlp_backward(pass, layer, s, remat == model::Remat::block ? s.h : h);
    if (remat == model::Remat::block) {
      enter_phase(Phase::recompute);
      attention_block(pass, layer, s, h);
      enter_phase(Phase::backward);
    }
    attention_block_backward(pass, layer, s, wants_dx);
    leave_storage(layer);
  }
  if (!full) return;
  enter_storage(ShardedStorage::kEmbeddings, Phase::backward);
  if (config.ple_dim > 0) per_layer_inputs_backward(*pass.tokens, memory.layers[0].x, memory.scratch.dx);
  add_rows(*pass.tokens, memory.scratch.dx, embed_scale, *embedding, vocab_rows());
  leave_storage(ShardedStorage::kEmbeddings);
}

// The gradient of a look-up, by columns: one writer, one order.
void Core::add_rows(const Tokens& tokens, const float* dx, float factor, Weight& table, const mesh::Range& own) {
  const auto timer = profile.time(Kernel::embedding);
  device.pool.parallel_for(table.cols, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < tokens.count; ++i) {
      const int id = tokens.ids[static_cast<size_t>(i)];
      if (id < own.begin || id >= own.end) continue;
      kernels.add(end - begin, dx + i * table.cols + begin, factor,
                  table.gradient + (id - own.begin) * table.cols + begin);
    }
  });
}

}  // namespace mw::engine
