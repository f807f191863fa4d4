// SPDX-License-Identifier: Apache-2.0
// Counts are of the code that runs: transformers' modeling files for PyTorch eager (one kernel and one buffer per
// operation, norms and softmax in f32), Tunix and XLA's fusion for compiled programs.
#include "core/plan/memory/activations.h"

#include <algorithm>

namespace mw::plan {
namespace {

// The layer's widths on a device, and how its stack writes it.
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

// Adapters: the input as the adapter takes it (dropped out, or cast), A's output.
double adapters_kept(const View& v) {
  const Request& r = *v.m.request;
  const double own = bytes_of(r.profile.adapters);
  double sum = 0;
  for (const Product& a : v.k.lora_a) {
    if (r.train.dropout)
      sum += a.in * (own + 1);  // what is left of it, and the mask
    else if (v.eager && own > 2)
      sum += a.in * 4;  // the f32 copy
    sum += a.out * 2;
  }
  return sum;
}

void eager_memory(const View& v, LayerMemory& o) {
  // f32 input, f32 (Gemma) or bf16 normalised value, bf16 result.
  const double norm = v.wide_norms ? 10 : 8, head_norm = v.wide_norms ? 8 : 6;
  const double repeated = v.k.heads > v.k.kv_heads ? 2 * v.q : 2 * v.kv;  // K and V as wide as Q
  o.attention = norm * v.d + head_norm * v.normed_heads() + 2 * v.q + 2 * repeated + 4 * v.q;
  o.mlp = norm * v.d + 8 * v.f;  // gate, its activation, up, their product
  if (v.post_norms) {
    o.attention += norm * v.d;
    o.mlp += norm * v.d;
  }
  if (v.scores) o.attention += 6 * v.row_scores();  // f32 softmax and its bf16 copy
  o.attention_backward = v.scores ? 10 * v.row_scores() : 8 * v.q;
  o.mlp_backward = 6 * v.f + 4 * v.d;
  const double mlp = 8 * v.f + norm * v.d;
  const double attention = norm * v.d + 6 * v.q + 4 * v.kv + (v.scores ? 8 * v.row_scores() : 0);
  o.forward = std::max(mlp, attention) + 4 * v.d;
}

void fused_memory(const View& v, LayerMemory& o) {
  o.attention = 2 * v.width + 2 * v.width + 2 * v.q + 4 * v.kv + 2 * v.normed_heads() + 2 * v.q;
  o.mlp = 2 * v.width + 2 * v.width + 6 * v.f;
  if (v.post_norms) {
    o.attention += 2 * v.width;
    o.mlp += 2 * v.width;
  }
  if (v.scores) o.attention += bytes_of(v.m.request->profile.scores) * v.row_scores();
  o.attention_backward = (v.scores ? 6 * v.row_scores() : 8 * v.q) + 4 * v.d;
  o.mlp_backward = 6 * v.f + 4 * v.d;
  const double mlp = 4 * v.f;  // the product takes a place of its factors
  const double attention = 4 * v.q + 4 * v.kv + (v.scores ? 4 * v.row_scores() : 0);
  o.forward = std::max(mlp, attention) + 2 * v.d + 2 * v.width;
}

LayerTraffic eager_traffic(const View& v) {
  const double norm = v.wide_norms ? 40 : 36;
  double bytes = v.norms * norm * v.d + norm * v.normed_heads();
  bytes += 20 * (v.q + v.kv);                                       // RoPE: rotate, two products, a sum
  if (v.k.heads > v.k.kv_heads) bytes += 2 * (2 * v.kv + 2 * v.q);  // K and V repeated
  bytes += 4 * v.q;                                                 // attention's output made contiguous
  bytes += 2 * 6 * v.d;                                             // residuals
  bytes += 10 * v.f;                                                // activation, product
  if (v.m.config.layer_scalar) bytes += 4 * v.d;
  const Request& r = *v.m.request;
  const bool wide = bytes_of(r.profile.adapters) > 2;
  for (const Product& b : v.k.lora_b) bytes += 10 * b.out;  // scaled, added
  for (const Product& a : v.k.lora_a) {
    if (wide) bytes += 12 * a.in;                         // cast to f32, and back for the product
    if (r.train.dropout) bytes += (wide ? 9 : 5) * a.in;  // read, written, the mask
  }
  double attention = 0, attention_back = 0;
  if (v.scores) {
    attention = 24 * v.row_scores();
    attention_back = 30 * v.row_scores();
  } else {
    attention = 4 * v.q + 4 * v.kv;
    attention_back = 3 * attention;
  }
  const double kernels = 8 * (v.norms + (v.qk_norm ? 2 : 0) + (v.m.config.v_norm ? 1 : 0)) + 10 + 9 + 5 + 7 +
                         5.0 * static_cast<double>(v.k.lora_b.size());
  return {bytes + attention, bytes + attention, 2 * bytes + attention_back, kernels};
}

LayerTraffic fused_traffic(const View& v) {
  double bytes = v.norms / 2 * 2 * 2 * v.width + 2 * 2 * 3 * v.width;  // norms in and out, residuals
  bytes += 4 * (v.q + 2 * v.kv);                                       // head norms and RoPE at once
  bytes += 6 * v.f;
  for (const Product& b : v.k.lora_b) bytes += 4 * b.out;
  if (v.m.request->train.dropout)  // each adapter drops out its own copy of the input
    for (const Product& a : v.k.lora_a) bytes += 4 * a.in;
  double attention = 4 * v.q + 4 * v.kv, keeping = attention, attention_back = 3 * attention;
  if (v.scores) {  // written, read for maximum and sum, read and written as probabilities, read
    const double kept = bytes_of(v.m.request->profile.scores);
    attention = 12 * v.row_scores();
    keeping = (8 + 2 * kept) * v.row_scores();
    // The product's gradient written; read with what was kept for the sum, and again for the scores' gradient, which is
    // written and read twice; what was kept read for the values' gradient.
    attention_back = (2 + 2 * (2 + kept) + 6 + kept) * v.row_scores();
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
