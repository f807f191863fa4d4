// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/step_layout.h"

#include <algorithm>

namespace mw::engine {
namespace {

using LayerFields = LayerActivationsAt<FieldOf>;

class StepCarver {
 public:
  StepCarver(const ModelShape& model, const ActivationShape& shape)
      : model_(model),
        config_(model.config),
        shape_(shape),
        n_(shape.tokens),
        d_(n_ * config_.dim),
        count_(config_.layers.size()),
        lowest_(shape.backward ? static_cast<size_t>(shape.lowest) : count_) {}

  StepLayout run() {
    out_.layers.resize(count_ + 1);
    allocate("step scratch", [&](Carver& c) { carve_scratch(c, out_.scratch); });
    allocate("layer inputs", [&](Carver& c) { carve_inputs(c); });
    if (config_.ple_dim > 0)
      allocate("per-layer inputs", [&](Carver& c) {
        out_.ple = c.take_floats(n_ * model_.all_ple());
        out_.ple_inv = c.take_floats(n_ * static_cast<std::int64_t>(count_));
      });
    if (std::any_of(model_.layer_shapes.begin(), model_.layer_shapes.end(),
                    [](const LayerShape& l) { return l.shares_kv; }))
      allocate("lent keys and values", [&](Carver& c) { carve_shared_kv(c); });
    const bool keeps = shape_.backward && shape_.remat == model::Remat::none;
    const size_t first_own = keeps ? lowest_ : count_;
    if (first_own > 0)
      allocate("one layer's activations", [&](Carver& c) {  // one working set for every layer that keeps nothing
        const Blocks blocks =
            shape_.backward && shape_.remat == model::Remat::layer ? Blocks::side_by_side : Blocks::shared;
        std::int64_t most = 0;
        for (size_t l = 0; l < first_own; ++l) {
          c.rewind(0);
          carve_layer(c, l, blocks);
          most = std::max(most, c.used());
        }
        c.rewind(most);
      });
    for (size_t l = first_own; l < count_; ++l)
      allocate("activations", [&](Carver& c) { carve_layer(c, l, Blocks::side_by_side); });
    point_at_keys();
    return std::move(out_);
  }

 private:
  enum class Blocks { side_by_side, shared };  // shared: the MLP's tensors take the place of attention's

  template <class Carve>
  void allocate(std::string_view label, const Carve& carve) {
    Carver carver(static_cast<int>(out_.allocations.size()));
    carve(carver);
    out_.allocations.push_back({MemoryCategory::activations, label, Bytes(carver.used())});
  }

  // Below the lowest trained layer the inputs share one place.
  void carve_inputs(Carver& c) {
    for (size_t l = lowest_; l <= count_; ++l) out_.layers[l].x = c.take_floats(d_);
    for (size_t l = 0; l < lowest_; ++l) out_.layers[l].x = out_.layers[lowest_].x;
    if (shape_.remat != model::Remat::block) return;
    for (size_t l = lowest_; l < count_; ++l) out_.layers[l].h = c.take_floats(d_);
  }

  void carve_layer(Carver& c, size_t layer, Blocks blocks) {
    const std::int64_t start = c.used();
    carve_attention(c, layer);
    const std::int64_t attention_end = c.used();
    if (blocks == Blocks::shared) c.rewind(start);
    carve_mlp(c, layer);
    c.rewind(std::max(c.used(), attention_end));
  }

  void carve_attention(Carver& c, size_t layer) {
    const model::Layer& l = config_.layers[layer];
    const std::int64_t q = n_ * model_.q_width(layer), kv = n_ * model_.kv_width(layer);
    LayerFields& s = out_.layers[layer];
    s.inv_input = c.take_floats(n_);
    if (config_.post_norms) s.inv_post_attention = c.take_floats(n_);
    if (config_.qk_norm) s.inv_q = c.take_floats(n_ * l.heads);
    if (config_.qk_norm && l.has_k) s.inv_k = c.take_floats(n_ * l.kv_heads);
    if (config_.v_norm && l.has_k) s.inv_v = c.take_floats(n_ * l.kv_heads);
    s.lse = c.take_floats(n_ * l.heads);
    s.q = c.take_floats(q);
    if (l.has_k) s.k = c.take_floats(kv);
    s.v = l.has_v ? c.take_floats(kv) : s.k;
    s.o = c.take_floats(q);
    if (config_.post_norms) s.a = c.take_floats(d_);
    carve_adapters(c, layer, 0, 4);
  }

  void carve_mlp(Carver& c, size_t layer) {
    LayerFields& s = out_.layers[layer];
    s.inv_pre_ffw = c.take_floats(n_);
    if (config_.post_norms) s.inv_post_ffw = c.take_floats(n_);
    s.g = c.take_floats(n_ * config_.layers[layer].mlp_dim);
    s.u = c.take_floats(n_ * config_.layers[layer].mlp_dim);
    if (config_.post_norms) s.dense = s.f = c.take_floats(d_);
    if (config_.experts > 0) carve_experts(c, s);
    if (config_.ple_dim > 0) {
      s.inv_post_ple = c.take_floats(n_);
      s.pg = c.take_floats(n_ * model_.ple_width());
      s.p = c.take_floats(d_);
    }
    carve_adapters(c, layer, 4, kProjections);
  }

  void carve_adapters(Carver& c, size_t layer, size_t first, size_t end) {
    for (size_t p = first; p < end; ++p)
      if (const std::int64_t rank = model_.layer_shapes[layer].ranks[p]; rank > 0)
        out_.layers[layer].z[p] = c.take_floats(n_ * rank);
  }

  void carve_experts(Carver& c, LayerFields& s) {
    const std::int64_t chosen = n_ * config_.experts_per_token;
    s.routing.expert = c.take_floats(chosen);
    s.routing.share = c.take_floats(chosen);
    s.routing.order = c.take_floats(chosen);
    s.routing.first = c.take_floats(config_.experts + 1);
    for (BufferField* inv : {&s.inv_router, &s.inv_moe_pre, &s.inv_dense_post, &s.inv_moe_post})
      *inv = c.take_floats(n_);
    s.eg = c.take_floats(chosen * config_.expert_dim);
    s.eu = c.take_floats(chosen * config_.expert_dim);
    s.dense = c.take_floats(d_);
    s.experts = c.take_floats(d_);
  }

  void carve_scratch(Carver& c, ScratchAt<FieldOf>& s) {
    std::int64_t q = 0, kv = 0, mlp = 0, in = 0, rank = 0, dora = 0;  // the widest of all layers and adapters
    for (size_t l = 0; l < count_; ++l) {
      q = std::max(q, n_ * model_.q_width(l));
      kv = std::max(kv, n_ * model_.kv_width(l));
      mlp = std::max(mlp, n_ * config_.layers[l].mlp_dim);
    }
    for (const LoraShape& a : model_.lora_shapes) {
      in = std::max(in, a.in), rank = std::max(rank, a.rank);
      if (a.dora) dora = std::max(dora, a.out);
    }
    s.inv = c.take_floats(n_);
    s.norm = c.take_floats(d_);
    s.h = c.take_floats(d_);
    if (shape_.backward) {
      s.t = c.take_floats(d_);
      s.dx = c.take_floats(d_);
      s.dz = c.take_floats(n_ * rank);
    }
    if (shape_.dropout) s.drop = c.take_floats(n_ * in);
    if (shape_.backward && dora > 0) s.dora = c.take_floats(n_ * dora);
    const std::int64_t shared = c.used();  // attention's scratch and the MLP's are never live together
    s.qh = c.take_floats(q);
    s.kh = c.take_floats(kv);
    if (config_.v_norm) s.vh = c.take_floats(kv);
    if (shape_.backward) s.dq = c.take_floats(q), s.dk = c.take_floats(kv), s.dv = c.take_floats(kv);
    std::int64_t end = c.used();
    const auto or_else = [&](auto take) {
      c.rewind(shared);
      take();
      end = std::max(end, c.used());
    };
    or_else([&] {
      s.m = c.take_floats(mlp);
      if (config_.ple_dim > 0) s.pm = c.take_floats(n_ * model_.ple_width());
    });
    if (config_.experts > 0) or_else([&] { carve_expert_scratch(c, s); });
    if (config_.ple_dim > 0) or_else([&] { s.ple = c.take_floats(n_ * model_.all_ple()); });
    c.rewind(end);
  }

  void carve_expert_scratch(Carver& c, ScratchAt<FieldOf>& s) {
    s.xs = c.take_floats(d_);
    s.ys = c.take_floats(d_);
    s.em = c.take_floats(n_ * config_.expert_dim);
    s.scores = c.take_floats(n_ * config_.experts);
    if (!shape_.backward) return;
    s.dm = c.take_floats(n_ * config_.expert_dim);
    s.d_share = c.take_floats(n_ * config_.experts_per_token);
    s.d_experts = c.take_floats(d_);
    s.ds = c.take_floats(d_);
  }

  // Keys and values that later layers share outlive their layer, as do their gradients.
  void carve_shared_kv(Carver& c) {
    for (size_t l = 0; l < count_; ++l) {
      if (!model_.layer_shapes[l].shares_kv) continue;
      const std::int64_t kv = n_ * model_.kv_width(l);
      out_.layers[l].kh = c.take_floats(kv);
      out_.layers[l].vh = c.take_floats(kv);
      if (l < lowest_) continue;
      out_.layers[l].dkh = c.take_floats(kv);
      out_.layers[l].dvh = c.take_floats(kv);
    }
  }

  // Keys and values that attention reads in each layer: its own (shared or scratch) or its donor's.
  void point_at_keys() {
    for (size_t l = 0; l < count_; ++l) {
      LayerFields& s = out_.layers[l];
      if (const int donor = config_.layers[l].kv_donor; donor >= 0) {
        const LayerFields& from = out_.layers[static_cast<size_t>(donor)];
        s.kh = from.kh, s.vh = from.vh, s.dkh = from.dkh, s.dvh = from.dvh;
        continue;
      }
      if (!s.kh) s.kh = out_.scratch.kh, s.vh = config_.v_norm && config_.layers[l].has_k ? out_.scratch.vh : s.v;
      if (!s.dkh) s.dkh = out_.scratch.dk, s.dvh = out_.scratch.dv;
    }
  }

  const ModelShape& model_;
  const model::Config& config_;
  const ActivationShape shape_;
  const std::int64_t n_, d_;  // tokens; floats of the residual stream
  const size_t count_, lowest_;
  StepLayout out_;
};

}  // namespace

bool ActivationShape::holds(const ActivationShape& need) const {
  if (tokens < need.tokens) return false;
  if (!need.backward) return true;
  return backward && full == need.full && remat == need.remat && lowest == need.lowest && (dropout || !need.dropout);
}

ActivationShape forward_shape(const ModelShape& model, std::int64_t tokens) {
  return {.tokens = tokens, .lowest = static_cast<int>(model.config.layers.size())};
}

StepLayout lay_out_step(const ModelShape& model, const ActivationShape& shape) {
  return StepCarver(model, shape).run();
}

}  // namespace mw::engine
