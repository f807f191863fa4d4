// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/step_buffers.h"

#include <algorithm>

namespace mw::engine {
namespace {

// Assigns consecutive regions of a buffer; with a null base it only computes the size.
class Carver {
 public:
  explicit Carver(float* base = nullptr) : base_(base) {}
  float* take(std::int64_t floats) {
    float* at = base_ ? base_ + used_ : nullptr;
    used_ += aligned_floats(floats);
    return at;
  }
  int* take_ints(std::int64_t ints) { return reinterpret_cast<int*>(take(ints)); }
  std::int64_t used() const { return used_; }
  void rewind(std::int64_t to) { used_ = to; }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

void carve_attention(Carver& c, const ModelWeights& weights, size_t layer, std::int64_t n, LayerActivations& s) {
  const model::Layer& l = weights.config.layers[layer];
  const std::int64_t q = std::int64_t{l.heads} * l.head_dim, kv = std::int64_t{l.kv_heads} * l.head_dim;
  s.inv_input = c.take(n);
  s.inv_post_attention = c.take(n);
  const LayerWeights& parts = weights.layers[layer];
  if (parts.q_norm) s.inv_q = c.take(n * l.heads);
  if (parts.k_norm) s.inv_k = c.take(n * l.kv_heads);
  if (parts.v_norm) s.inv_v = c.take(n * l.kv_heads);
  s.lse = c.take(n * l.heads);
  s.q = c.take(n * q);
  if (l.has_k) s.k = c.take(n * kv);
  s.v = l.has_v ? c.take(n * kv) : s.k;
  s.o = c.take(n * q);
  s.a = c.take(n * weights.config.dim);
  for (int p = 0; p < 4; ++p)
    if (const Adapter* adapter = parts.adapter[p]) s.z[p] = c.take(n * adapter->rank);
}

void carve_experts(Carver& c, const ModelWeights& weights, std::int64_t n, LayerActivations& s) {
  const std::int64_t chosen = n * weights.config.experts_per_token;
  s.routing.expert = c.take_ints(chosen);
  s.routing.share = c.take(chosen);
  s.routing.order = c.take_ints(chosen);
  s.routing.first = c.take_ints(weights.config.experts + 1);
  for (float** inv : {&s.inv_router, &s.inv_moe_pre, &s.inv_dense_post, &s.inv_moe_post}) *inv = c.take(n);
  s.eg = c.take(chosen * weights.config.expert_dim);
  s.eu = c.take(chosen * weights.config.expert_dim);
  s.dense = c.take(n * weights.config.dim);
  s.experts = c.take(n * weights.config.dim);
}

void carve_mlp(Carver& c, const ModelWeights& weights, size_t layer, std::int64_t n, LayerActivations& s) {
  s.inv_pre_ffw = c.take(n);
  s.inv_post_ffw = c.take(n);
  s.g = c.take(n * weights.config.layers[layer].mlp_dim);
  s.u = c.take(n * weights.config.layers[layer].mlp_dim);
  s.dense = s.f = c.take(n * weights.config.dim);
  if (weights.config.experts > 0) carve_experts(c, weights, n, s);
  const LayerWeights& parts = weights.layers[layer];
  if (parts.ple_gate) {
    s.inv_post_ple = c.take(n);
    s.pg = c.take(n * weights.ple_width());
    s.p = c.take(n * weights.config.dim);
  }
  for (int p = 4; p < kProjections; ++p)
    if (const Adapter* adapter = parts.adapter[p]) s.z[p] = c.take(n * adapter->rank);
}

enum class Blocks { side_by_side, shared };  // shared: the MLP's tensors take the place of attention's

void carve_layer(Carver& c, const ModelWeights& weights, size_t layer, std::int64_t n, Blocks blocks,
                 LayerActivations& s) {
  const std::int64_t start = c.used();
  carve_attention(c, weights, layer, n, s);
  const std::int64_t attention_end = c.used();
  if (blocks == Blocks::shared) c.rewind(start);
  carve_mlp(c, weights, layer, n, s);
  if (c.used() < attention_end) c.take(attention_end - c.used());
}

struct Widest {
  std::int64_t q = 0, kv = 0, mlp = 0, in = 0, rank = 0;
};

Widest widest(const ModelWeights& weights) {
  Widest w;
  for (const model::Layer& l : weights.config.layers) {
    w.q = std::max(w.q, std::int64_t{l.heads} * l.head_dim);
    w.kv = std::max(w.kv, std::int64_t{l.kv_heads} * l.head_dim);
    w.mlp = std::max(w.mlp, std::int64_t{l.mlp_dim});
  }
  for (const Adapter& a : weights.adapters)
    w.in = std::max(w.in, a.in), w.rank = std::max(w.rank, std::int64_t{a.rank});
  return w;
}

void carve_expert_scratch(Carver& c, const ModelWeights& weights, const StepShape& shape, Scratch& s) {
  const std::int64_t n = shape.tokens, d = weights.config.dim, f = weights.config.expert_dim;
  s.xs = c.take(n * d);
  s.ys = c.take(n * d);
  s.em = c.take(n * f);
  s.scores = c.take(n * weights.config.experts);
  if (!shape.backward) return;
  s.dm = c.take(n * f);
  s.d_share = c.take(n * weights.config.experts_per_token);
  s.d_experts = c.take(n * d);
  s.ds = c.take(n * d);
}

void carve_scratch(Carver& c, const ModelWeights& weights, const StepShape& shape, Scratch& s) {
  const Widest w = widest(weights);
  const std::int64_t n = shape.tokens, d = weights.config.dim;
  s.inv = c.take(n);
  s.norm = c.take(n * d);
  s.h = c.take(n * d);
  if (shape.backward) {
    s.t = c.take(n * d);
    s.dx = c.take(n * d);
    s.dz = c.take(n * w.rank);
  }
  if (shape.dropout) s.drop = c.take(n * w.in);
  const std::int64_t shared = c.used();  // attention's scratch and the MLP's are never live together
  s.qh = c.take(n * w.q);
  s.kh = c.take(n * w.kv);
  if (weights.config.v_norm) s.vh = c.take(n * w.kv);
  if (shape.backward) s.dq = c.take(n * w.q), s.dk = c.take(n * w.kv), s.dv = c.take(n * w.kv);
  std::int64_t end = c.used();
  const auto or_else = [&](auto take) {
    c.rewind(shared);
    take();
    end = std::max(end, c.used());
  };
  or_else([&] {
    s.m = c.take(n * w.mlp);
    if (weights.config.ple_dim > 0) s.pm = c.take(n * weights.ple_width());
  });
  if (weights.config.experts > 0) or_else([&] { carve_expert_scratch(c, weights, shape, s); });
  if (weights.config.ple_dim > 0)
    or_else([&] { s.ple = c.take(n * static_cast<std::int64_t>(weights.layers.size()) * weights.config.ple_dim); });
  c.rewind(end);
}

// Keys and values that later layers share outlive their layer, as do their gradients.
void carve_shared_kv(Carver& c, const ModelWeights& weights, const StepShape& shape,
                     std::vector<LayerActivations>& states) {
  for (size_t l = 0; l < weights.layers.size(); ++l) {
    if (!weights.layers[l].shares_kv) continue;
    const std::int64_t floats =
        std::int64_t{shape.tokens} * weights.config.layers[l].kv_heads * weights.config.layers[l].head_dim;
    states[l].kh = c.take(floats);
    states[l].vh = c.take(floats);
    if (!shape.backward || static_cast<int>(l) < shape.lowest) continue;
    states[l].dkh = c.take(floats);
    states[l].dvh = c.take(floats);
  }
}

// Keys and values that attention reads in each layer: its own (shared or scratch) or its donor's.
void point_at_keys(const ModelWeights& weights, const Scratch& scratch, std::vector<LayerActivations>& states) {
  for (size_t l = 0; l < weights.layers.size(); ++l) {
    LayerActivations& s = states[l];
    if (const int donor = weights.config.layers[l].kv_donor; donor >= 0) {
      const LayerActivations& from = states[static_cast<size_t>(donor)];
      s.kh = from.kh, s.vh = from.vh, s.dkh = from.dkh, s.dvh = from.dvh;
      continue;
    }
    if (!s.kh) s.kh = scratch.kh, s.vh = weights.layers[l].v_norm ? scratch.vh : s.v;
    if (!s.dkh) s.dkh = scratch.dk, s.dvh = scratch.dv;
  }
}

}  // namespace

bool StepShape::holds(const StepShape& need) const {
  if (tokens < need.tokens) return false;
  if (!need.backward) return true;
  return backward && full == need.full && remat == need.remat && lowest == need.lowest && (dropout || !need.dropout);
}

void StepBuffers::prepare(const StepShape& need) {
  if (step.shape.tokens > 0 && step.shape.holds(need)) return;
  step = {};
  StepActivations m;
  m.shape = need;
  const size_t count = weights.layers.size(), lowest = need.backward ? static_cast<size_t>(need.lowest) : count;
  const std::int64_t n = need.tokens;
  const auto allocate = [&](auto carve, const char* label) {  // computes the size, allocates, then assigns
    Carver measure;
    carve(measure);
    Buffer<float>& b =
        m.buffers.emplace_back(device.arena, MemoryCategory::activations, static_cast<size_t>(measure.used()), label);
    Carver real(b.data());
    carve(real);
  };
  m.layers.resize(count + 1);
  allocate([&](Carver& c) { carve_scratch(c, weights, need, m.scratch); }, "step scratch");
  allocate(
      [&](Carver& c) {  // layer inputs; below the lowest trained layer they share its place. The extra one: the output
        for (size_t l = lowest; l <= count; ++l) m.layers[l].x = c.take(n * weights.config.dim);
        for (size_t l = 0; l < lowest; ++l) m.layers[l].x = m.layers[lowest].x;
        if (need.remat == model::Remat::block)
          for (size_t l = lowest; l < count; ++l) m.layers[l].h = c.take(n * weights.config.dim);
      },
      "layer inputs");
  if (weights.config.ple_dim > 0)
    allocate(
        [&](Carver& c) {
          m.ple = c.take(n * static_cast<std::int64_t>(count) * weights.config.ple_dim);
          m.ple_inv = c.take(n * static_cast<std::int64_t>(count));
        },
        "per-layer inputs");
  if (std::any_of(weights.layers.begin(), weights.layers.end(), [](const LayerWeights& p) { return p.shares_kv; }))
    allocate([&](Carver& c) { carve_shared_kv(c, weights, need, m.layers); }, "lent keys and values");
  const bool keeps = need.backward && need.remat == model::Remat::none;
  const size_t first_own = keeps ? lowest : count;
  if (first_own > 0)
    allocate(
        [&](Carver& c) {  // one working set for every layer that keeps nothing
          const Blocks blocks =
              need.backward && need.remat == model::Remat::layer ? Blocks::side_by_side : Blocks::shared;
          std::int64_t most = 0;
          for (size_t l = 0; l < first_own; ++l) {
            c.rewind(0);
            carve_layer(c, weights, l, n, blocks, m.layers[l]);
            most = std::max(most, c.used());
          }
          if (c.used() < most) c.take(most - c.used());
        },
        "one layer's activations");
  for (size_t l = first_own; l < count; ++l)
    allocate([&](Carver& c) { carve_layer(c, weights, l, n, Blocks::side_by_side, m.layers[l]); }, "activations");
  point_at_keys(weights, m.scratch, m.layers);
  step = std::move(m);
}

void StepBuffers::release() {
  step = {};
  logit_chunk = {}, f16_logits = {}, logit_maxima = {}, attention_workspace = {};
  attention_block_keys = 0;
  rope_tables.clear();
  rope_positions = 0;
}

void StepBuffers::prepare_rope(int last_position) {
  if (last_position < rope_positions) return;
  const auto positions = static_cast<int>(sizes::rope_positions(last_position + 1));
  rope_tables.clear();
  rope_positions = 0;
  for (const RopeSpec& spec : weights.rope_specs) rope_tables.push_back(make_rope_table(device, spec, positions));
  rope_positions = positions;
}

float* StepBuffers::logit_rows(std::int64_t rows) {
  const auto floats = static_cast<size_t>(rows * weights.config.vocab);
  if (logit_chunk.size() >= floats && logit_chunk.size() <= 4 * floats) return logit_chunk.data();
  logit_chunk = {};
  logit_chunk = Buffer<float>(device.arena, MemoryCategory::logits, floats, "logits");
  return logit_chunk.data();
}

std::uint16_t* StepBuffers::f16_logit_rows(std::int64_t rows) {
  const auto count = static_cast<size_t>(rows * weights.config.vocab);
  if (f16_logits.size() >= count && f16_logits.size() <= 4 * count) return f16_logits.data();
  f16_logits = {}, logit_maxima = {};
  f16_logits = Buffer<std::uint16_t>(device.arena, MemoryCategory::logits, count, "logits");
  logit_maxima = Buffer<float>(device.arena, MemoryCategory::logits,
                               static_cast<size_t>(rows * sizes::logit_stripes(weights.config.vocab)), "logits");
  return f16_logits.data();
}

}  // namespace mw::engine
