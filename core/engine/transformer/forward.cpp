// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/engine/transformer/core.h"

namespace mw::engine {
namespace {

// Rows a thread takes at least: waking another one for less costs more than it saves, most of all when decoding.
constexpr std::int64_t kGrain = 32;

}  // namespace

void Core::weight_row(const Weight& w, std::int64_t row, float* out) {
  widen_row(w.at, w.cols, row, 0, w.cols, out);
}

void Core::look_up(const Weight& table, const mesh::Range& own, int id, float* out) {
  if (id >= own.begin && id < own.end)
    weight_row(table, id - own.begin, out);
  else
    std::fill_n(out, table.cols, 0.0f);
}

void Core::embed(const Tokens& tokens, float* x) {
  const auto timer = profile.time(Kernel::embedding);
  const std::int64_t d = config.dim;
  const mesh::Range own = vocab_rows();
  device.pool.parallel_for(tokens.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      look_up(*embedding, own, tokens.ids[static_cast<size_t>(i)], x + i * d);
      kernels.scale(d, embed_scale, x + i * d);
    }
  });
  if (part) part->sum_embedding_rows({x, static_cast<size_t>(tokens.count * d)});
}

void Core::norm(std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, float* y, float* inv) {
  const auto timer = profile.time(Kernel::norms);
  device.pool.parallel_for(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.rms_norm(end - begin, dim, x + begin * dim, w.gain(), config.norm_eps, y + begin * dim, inv + begin);
  });
}

void Core::norm_add(std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, const float* residual,
                    float* y, float* inv) {
  const auto timer = profile.time(Kernel::norms);
  device.pool.parallel_for(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.rms_norm_add(end - begin, dim, x + begin * dim, w.gain(), config.norm_eps, residual + begin * dim,
                         y + begin * dim, inv + begin);
  });
}

void Core::head_norm(std::int64_t rows, std::int64_t dim, const float* x, const Weight* w, float* y, float* inv) {
  if (w)
    norm(rows, dim, x, *w, y, inv);
  else
    std::memcpy(y, x, static_cast<size_t>(rows * dim) * sizeof(float));
}

// What attention reads, from the raw projections. Without v_proj the values are the raw keys, before their norm and
// rotation.
void Core::keys_and_values(const Pass& pass, int layer, LayerState& s) {
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t heads = std::int64_t{pass.tokens->count} * l.kv_heads;
  head_norm(heads, l.head_dim, s.k, parts.k_norm, s.kh, s.inv_k);
  rotate(*pass.tokens, layer, l.kv_heads, 1.0f, s.kh);
  if (s.vh != s.v) head_norm(heads, l.head_dim, s.v, parts.v_norm, s.vh, s.inv_v);
}

// h = x + post_attention_norm(o_proj(attention(input_norm(x)))).
void Core::attention_block(const Pass& pass, int layer, LayerState& s, float* h) {
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const Tokens& tokens = *pass.tokens;
  const std::int64_t n = tokens.count, dim = config.dim;
  Scratch& c = memory.scratch;
  static constexpr Projection kRead[] = {Projection::q, Projection::k, Projection::v};
  project(pass, layer, std::span(kRead).first(l.has_v ? 3 : l.has_k ? 2 : 1), {s.x, parts.input_norm, s.inv_input}, s);
  head_norm(n * l.heads, l.head_dim, s.q, parts.q_norm, c.qh, s.inv_q);
  rotate(tokens, layer, l.heads, 1.0f, c.qh);
  if (l.has_k) keys_and_values(pass, layer, s);
  if (pass.served)
    attention_served(pass, layer, c.qh, s.kh, s.vh, s.o, s.lse);
  else if (pass.cache)
    attention_cached(pass, layer, c.qh, s.kh, s.vh, s.o, s.lse);
  else
    attention(pass, layer, c.qh, s.kh, s.vh, s.o, s.lse);
  static constexpr Projection kWritten[] = {Projection::o};
  project(pass, layer, kWritten, {s.o}, s);
  sum_parts(mesh::Block::attention, layer, n * dim, s.a);
  norm_add(n, dim, s.a, *parts.post_attention_norm, s.x, h, s.inv_post_attention);
}

void Core::gate(std::int64_t count, const LayerState& s, float* gated) {
  const auto timer = profile.time(Kernel::geglu);
  device.pool.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
    kernels.geglu(end - begin, s.g + begin, s.u + begin, gated + begin);
  });
}

// out = h + post_ffw_norm(down(gelu(gate(pre_ffw_norm(h))) * up(...))), then what else the layer does to its output.
void Core::mlp_block(const Pass& pass, int layer, LayerState& s, const float* h, float* out) {
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  const std::int64_t n = pass.tokens->count, dim = config.dim;
  Scratch& c = memory.scratch;
  static constexpr Projection kInto[] = {Projection::gate, Projection::up}, kOut[] = {Projection::down};
  project(pass, layer, kInto, {h, parts.pre_ffw_norm, s.inv_pre_ffw}, s, c.m);
  project(pass, layer, kOut, {c.m}, s);
  sum_parts(mesh::Block::mlp, layer, n * dim, s.dense);
  if (parts.router) {  // f = dense_post_norm(dense) + moe_post_norm(experts)
    experts_block(pass, layer, s, h);
    norm(n, dim, s.dense, *parts.dense_post_norm, s.f, s.inv_dense_post);
    norm_add(n, dim, s.experts, *parts.moe_post_norm, s.f, s.f, s.inv_moe_post);
  }
  norm_add(n, dim, s.f, *parts.post_ffw_norm, h, out, s.inv_post_ffw);
  if (parts.ple_gate) per_layer_block(pass, layer, s, out);
  if (parts.layer_scalar) scale(n * dim, *parts.layer_scalar->at.f32, out);
}

void Core::scale(std::int64_t n, float factor, float* x) {
  device.pool.parallel_for(
      n, 4096, [&](std::int64_t begin, std::int64_t end) { kernels.scale(end - begin, factor, x + begin); });
}

void Core::rotate(const Tokens& tokens, int layer, int heads, float sign, float* x) {
  const auto timer = profile.time(Kernel::rope);
  const std::int64_t dim = config.layers[static_cast<size_t>(layer)].head_dim;
  const auto index = static_cast<size_t>(layers[static_cast<size_t>(layer)].rope);
  const float* cos = rope_tables[index].data();
  const RopeTable table{cos, cos + rope_positions * (dim / 2)};
  device.pool.parallel_for(tokens.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.rope(end - begin, heads, dim, tokens.positions.data() + begin, table, sign, x + begin * heads * dim);
  });
}

const float* Core::forward(const Pass& pass) {
  prepare_rope(pass.tokens->last_position);
  enter_phase(mesh::Phase::forward);
  enter_storage(ShardedStorage::kEmbeddings, mesh::Phase::forward);
  if (pass.from)
    std::copy_n(pass.from, std::int64_t{pass.tokens->count} * config.dim, memory.layers[0].x);
  else
    embed(*pass.tokens, memory.layers[0].x);
  if (config.ple_dim > 0) per_layer_inputs(*pass.tokens, memory.layers[0].x);
  const int count = static_cast<int>(layers.size());
  for (int layer = 0; layer < count; ++layer) {
    LayerState& s = memory.layers[static_cast<size_t>(layer)];
    enter_storage(layer, mesh::Phase::forward);
    float* h = s.h ? s.h : memory.scratch.h;
    attention_block(pass, layer, s, h);
    mlp_block(pass, layer, s, h, memory.layers[static_cast<size_t>(layer) + 1].x);
  }
  return memory.layers.back().x;
}

}  // namespace mw::engine
