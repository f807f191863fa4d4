// SPDX-License-Identifier: Apache-2.0
// The counts follow the stacks' code: transformers' modeling files for PyTorch eager (one kernel and one buffer per
// operation, norms and softmax in f32), Tunix and XLA's fusion for compiled programs.
#include "core/plan/memory/activations.h"

#include <algorithm>

namespace mw::plan {
namespace {

// The widths of a layer on a device and the relevant options of its stack.
struct View {
  const LocalModel& m;
  const LayerKind& k;
  double len;
  bool eager, scores, qk_norm;
  bool wide_norms;  // Gemma multiplies by the norm's weight in f32, the others in bf16
  bool post_norms;
  double d, width, q, kv, f;  // q: queries; kv: keys (and as many values)
  double norms;               // of the stream, per layer

  View(const LocalModel& model, const LayerKind& kind, double length) : m(model), k(kind), len(length) {
    const StackProfile& h = m.request->profile;
    eager = h.elementwise == StackProfile::Elementwise::eager;
    scores = h.attention == StackProfile::Attention::materialised;
    wide_norms = m.config.norm_form == model::NormForm::one_plus_w || m.config.family == model::Family::gemma4;
    post_norms = m.config.post_norms;
    qk_norm = m.config.qk_norm;
    d = m.config.dim;
    width = m.width;
    q = k.q();
    kv = k.shape.has_k ? k.kv() : 0;
    f = k.mlp +
        (m.config.experts > 0 ? static_cast<double>(m.config.expert_dim) * m.config.experts_per_token / m.mlp_ways : 0);
    norms = post_norms ? 4 : 2;
  }
  double row_scores() const { return k.heads * len; }  // of one query token
  double normed_heads() const { return (qk_norm ? q + kv : 0) + (m.config.v_norm ? kv : 0); }
};

// Adapters keep their input (after dropout, or cast) and the output of A.
double adapters_kept(const View& view) {
  const Request& r = *view.m.request;
  const double own = bytes_of(r.profile.adapters);
  double sum = 0;
  for (const Product& a : view.k.lora_a) {
    if (r.train.dropout)
      sum += a.in * (own + 1);  // what is left of it, and the mask
    else if (view.eager && own > 2)
      sum += a.in * 4;  // the f32 copy
    sum += a.out * 2;
  }
  return sum;
}

void eager_memory(const View& view, LayerMemory& o) {
  // f32 input, f32 (Gemma) or bf16 normalised value, bf16 result.
  const double norm = view.wide_norms ? 10 : 8, head_norm = view.wide_norms ? 8 : 6;
  const double repeated = view.k.heads > view.k.kv_heads ? 2 * view.q : 2 * view.kv;  // K and V as wide as Q
  o.attention = norm * view.d + head_norm * view.normed_heads() + 2 * view.q + 2 * repeated + 4 * view.q;
  o.mlp = norm * view.d + 8 * view.f;  // gate, its activation, up, their product
  if (view.post_norms) {
    o.attention += norm * view.d;
    o.mlp += norm * view.d;
  }
  if (view.scores) o.attention += 6 * view.row_scores();  // f32 softmax and its bf16 copy
  o.attention_backward = view.scores ? 10 * view.row_scores() : 8 * view.q;
  o.mlp_backward = 6 * view.f + 4 * view.d;
  const double mlp = 8 * view.f + norm * view.d;
  const double attention = norm * view.d + 6 * view.q + 4 * view.kv + (view.scores ? 8 * view.row_scores() : 0);
  o.forward = std::max(mlp, attention) + 4 * view.d;
}

void fused_memory(const View& view, LayerMemory& o) {
  o.attention = 2 * view.width + 2 * view.width + 2 * view.q + 4 * view.kv + 2 * view.normed_heads() + 2 * view.q;
  o.mlp = 2 * view.width + 2 * view.width + 6 * view.f;
  if (view.post_norms) {
    o.attention += 2 * view.width;
    o.mlp += 2 * view.width;
  }
  if (view.scores) o.attention += bytes_of(view.m.request->profile.scores) * view.row_scores();
  o.attention_backward = (view.scores ? 6 * view.row_scores() : 8 * view.q) + 4 * view.d;
  o.mlp_backward = 6 * view.f + 4 * view.d;
  const double mlp = 4 * view.f;  // the product takes a place of its factors
  const double attention = 4 * view.q + 4 * view.kv + (view.scores ? 4 * view.row_scores() : 0);
  o.forward = std::max(mlp, attention) + 2 * view.d + 2 * view.width;
}

LayerTraffic eager_traffic(const View& view) {
  const double norm = view.wide_norms ? 40 : 36;
  double bytes = view.norms * norm * view.d + norm * view.normed_heads();
  bytes += 20 * (view.q + view.kv);                                             // RoPE: rotate, two products, a sum
  if (view.k.heads > view.k.kv_heads) bytes += 2 * (2 * view.kv + 2 * view.q);  // K and V repeated
  bytes += 4 * view.q;                                                          // attention's output made contiguous
  bytes += 2 * 6 * view.d;                                                      // residuals
  bytes += 10 * view.f;                                                         // activation, product
  if (view.m.config.layer_scalar) bytes += 4 * view.d;
  const Request& r = *view.m.request;
  const bool wide = bytes_of(r.profile.adapters) > 2;
  for (const Product& b : view.k.lora_b) bytes += 10 * b.out;  // scaled, added
  for (const Product& a : view.k.lora_a) {
    if (wide) bytes += 12 * a.in;                         // cast to f32, and back for the product
    if (r.train.dropout) bytes += (wide ? 9 : 5) * a.in;  // read, written, the mask
  }
  double attention = 0, attention_back = 0;
  if (view.scores) {
    attention = 24 * view.row_scores();
    attention_back = 30 * view.row_scores();
  } else {
    attention = 4 * view.q + 4 * view.kv;
    attention_back = 3 * attention;
  }
  const double kernels = 8 * (view.norms + (view.qk_norm ? 2 : 0) + (view.m.config.v_norm ? 1 : 0)) + 10 + 9 + 5 + 7 +
                         5.0 * static_cast<double>(view.k.lora_b.size());
  return {bytes + attention, bytes + attention, 2 * bytes + attention_back, kernels};
}

LayerTraffic fused_traffic(const View& view) {
  double bytes = view.norms / 2 * 2 * 2 * view.width + 2 * 2 * 3 * view.width;  // norms in and out, residuals
  bytes += 4 * (view.q + 2 * view.kv);                                          // head norms and RoPE at once
  bytes += 6 * view.f;
  for (const Product& b : view.k.lora_b) bytes += 4 * b.out;
  if (view.m.request->train.dropout)  // each adapter drops out its own copy of the input
    for (const Product& a : view.k.lora_a) bytes += 4 * a.in;
  double attention = 4 * view.q + 4 * view.kv, keeping = attention, attention_back = 3 * attention;
  if (view.scores) {  // written, read for maximum and sum, read and written as probabilities, read
    const double kept = bytes_of(view.m.request->profile.scores);
    attention = 12 * view.row_scores();
    keeping = (8 + 2 * kept) * view.row_scores();
    // Writes the product's gradient; reads it with the kept scores for the sum and again for the scores' gradient,
    // which is
    // written and read twice; reads the kept scores for the values' gradient.
    attention_back = (2 + 2 * (2 + kept) + 6 + kept) * view.row_scores();
  }
  return {bytes + attention, bytes + keeping, 2 * bytes + attention_back, 12};
}

}  // namespace

double LayerMemory::live_layer() const {
  return kept() + std::max(attention_backward, mlp_backward);
}
double LayerMemory::live_block() const {
  return std::max(attention + attention_backward, mlp + mlp_backward);
}

LayerMemory layer_memory(const LocalModel& model, const LayerKind& kind, double len) {
  const View v(model, kind, len);
  LayerMemory out;
  v.eager ? eager_memory(v, out) : fused_memory(v, out);
  const double adapters = adapters_kept(v);
  out.attention += adapters / 2;
  out.mlp += adapters / 2;
  return out;
}

LayerTraffic layer_traffic(const LocalModel& model, const LayerKind& kind, double len) {
  const View v(model, kind, len);
  LayerTraffic t = v.eager ? eager_traffic(v) : fused_traffic(v);
  // Each token is copied to its experts and their outputs back: two reads and two writes of its width for each.
  const double routed = model.config.experts > 0 ? 8.0 * model.config.experts_per_token * v.d : 0;
  t.forward += routed;
  t.keeping += routed;
  t.backward += 2 * routed;
  return t;
}

double attended_keys(const LocalModel& model, const LayerKind& kind, double len) {
  if (model.request->profile.attention == StackProfile::Attention::materialised) return len;
  const double window = model.config.sliding_window;
  const bool sliding = kind.shape.attention == model::Attention::sliding && window > 0 && window < len;
  // Of token i: min(i, window) keys; averaged over the row.
  return sliding ? window - window * window / (2 * len) : len / 2;
}

double logit_traffic(const StackProfile& profile) {
  // Eager: product, f32 copy, log-softmax, gradients and their bf16 copy; fused: f32 logits read for maximum, sum and
  // gradient.
  return profile.elementwise == StackProfile::Elementwise::eager ? 44 : 24;
}

}  // namespace mw::plan
