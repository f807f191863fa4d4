// SPDX-License-Identifier: Apache-2.0
// The counts follow the stacks' code: transformers' modeling files for PyTorch eager (one kernel and one buffer per
// operation, norms and softmax in f32), Tunix and XLA's fusion for compiled programs.
#include "core/plan/prediction/activations.h"

#include <algorithm>
#include <array>

#include "core/base/buffer_sizes.h"

namespace mw::plan {
namespace {

// The widths of a layer on a device and the relevant options of its stack.
struct View {
  const LocalModel& m;
  const LayerKind& k;
  double len;
  bool eager, scores, qk_norm;
  bool wide_norms;  // Gemma multiplies by the norm's weight in f32, the others in bf16
  bool post_norms, laurel;
  double d, width, q, kv, f;  // q: queries; kv: keys (and as many values)
  double norms;               // of the stream, per layer
  double streams;             // between layers; more than one: AltUp's
  double e;                   // bytes of an element of the stream and of the products

  View(const LocalModel& model, const LayerKind& kind, double length) : m(model), k(kind), len(length) {
    const StackProfile& h = m.request->profile;
    eager = h.elementwise == StackProfile::Elementwise::eager;
    scores = h.attention == StackProfile::Attention::materialised;
    wide_norms = m.config.norm_form == model::NormForm::one_plus_w || m.config.family == model::Family::gemma4 ||
                 m.config.family == model::Family::gemma3n;
    laurel = m.config.laurel_rank > 0;
    streams = model::residual_streams(m.config);
    post_norms = m.config.post_norms;
    qk_norm = m.config.qk_norm;
    d = m.config.dim;
    width = m.width;
    q = k.q();
    kv = k.shape.has_k ? k.kv() : 0;
    f = k.mlp +
        (m.config.experts > 0 ? static_cast<double>(m.config.expert_dim) * m.config.experts_per_token / m.mlp_ways : 0);
    norms = (post_norms ? 4 : 2) + (laurel ? 1 : 0) + (altup() ? 2 : 0);  // AltUp's router has one before and after
    e = activation_bytes(*m.request);
  }
  bool altup() const { return streams > 1; }
  double sparse_gate() const { return k.shape.gate_sparsity > 0 ? k.mlp : 0; }
  double row_scores() const { return k.heads * len; }  // of one query token
  double normed_heads() const { return (qk_norm ? q + kv : 0) + (m.config.v_norm ? kv : 0); }
};

// Adapters keep their input (after dropout, or cast) and the output of A.
double adapters_kept(const View& view) {
  const Request& r = *view.m.request;
  const double own = bytes_of(r.profile.adapters);
  double sum = 0;
  for (const Product& a : view.k.lora_a) {
    if (r.lora.dropout > 0)
      sum += a.in * (own + 1);  // what is left of it, and the mask
    else if (view.eager && own > view.e)
      sum += a.in * 4;  // the f32 copy
    sum += a.out * view.e;
  }
  for (const Product& p : view.k.dora)
    sum += 2 * view.e * p.out;  // outputs of W and of B, for the magnitudes' gradient
  return sum;
}

// AltUp keeps the streams that enter the layer and those that it corrects; between layers, and in the backward, all of
// them take the place of one.
void add_streams(const View& view, double width, LayerMemory& o) {
  if (!view.altup()) return;
  const double others = 2 * view.e * (view.streams - 1) * width;
  o.attention += view.e * view.streams * width;
  o.mlp += view.e * view.streams * width;
  o.forward += others;
  o.attention_backward += others;
  o.mlp_backward += others;
}

void eager_memory(const View& view, LayerMemory& o) {
  // f32 input, f32 (Gemma) or bf16 normalised value, bf16 result.
  const double e = view.e, head_norm = 4 + (view.wide_norms ? 4 : e), norm = head_norm + e;
  const double repeated = view.k.heads > view.k.kv_heads ? e * view.q : e * view.kv;  // K and V as wide as Q
  o.attention = norm * view.d + head_norm * view.normed_heads() + e * view.q + 2 * repeated + 2 * e * view.q;
  o.mlp = norm * view.d + 4 * e * view.f;  // gate, its activation, up, their product
  if (view.post_norms) {
    o.attention += norm * view.d;
    o.mlp += norm * view.d;
  }
  if (view.scores) o.attention += (4 + (e < 4 ? e : 0)) * view.row_scores();  // f32 softmax and its bf16 copy
  o.attention_backward = view.scores ? (8 + e) * view.row_scores() : 4 * e * view.q;
  o.mlp_backward = 3 * e * view.f + 2 * e * view.d;
  const double mlp = 4 * e * view.f + norm * view.d;
  const double attention =
      norm * view.d + 3 * e * view.q + 2 * e * view.kv + (view.scores ? (4 + 2 * e) * view.row_scores() : 0);
  o.forward = std::max(mlp, attention) + 2 * e * view.d;
  if (view.laurel) o.attention += norm * view.d;
  o.mlp += e * view.sparse_gate();  // what the cutoff leaves of the gate
  if (view.altup()) {               // the norms of its router, and the first stream before its scale and its gate
    o.attention += norm * view.d;
    o.mlp += (norm + 2 * e) * view.d;
  }
  add_streams(view, view.d, o);
}

void fused_memory(const View& view, LayerMemory& o) {
  const double e = view.e;
  o.attention = e * (2 * view.width + 2 * view.q + 2 * view.kv + view.normed_heads());
  o.mlp = e * (2 * view.width + 3 * view.f);
  if (view.post_norms) {
    o.attention += e * view.width;
    o.mlp += e * view.width;
  }
  if (view.scores) o.attention += bytes_of(view.m.request->profile.scores) * view.row_scores();
  o.attention_backward = e * ((view.scores ? 3 * view.row_scores() : 4 * view.q) + 2 * view.d);
  o.mlp_backward = e * (3 * view.f + 2 * view.d);
  const double mlp = 2 * view.f;  // the product takes a place of its factors
  const double attention = 2 * view.q + 2 * view.kv + (view.scores ? 2 * view.row_scores() : 0);
  o.forward = e * (std::max(mlp, attention) + view.d + view.width);
  if (view.laurel) o.attention += e * view.width;
  add_streams(view, view.width, o);
}

// AltUp's passes over its streams, in widths of the stream, besides the norms and the product of its router.
double eager_altup(double streams) {
  const double predict = 9 * streams;  // copied for the product with the coefficients, multiplied, added, copied
  // The change of the first stream, repeated for each, multiplied and added.
  const double correct = 3 + (1 + streams) + 2 * streams + 3 * streams;
  const double output = 4 + 1 + 2 * (streams - 1);  // the first, copied and scaled; its result added to the others
  return predict + correct + output;
}
double fused_altup(double streams) {
  const double predict = 2 * streams, correct = 2 * streams + 1, output = 2 * (streams - 1);
  return predict + correct + output;
}

LayerTraffic eager_traffic(const View& view) {
  const double e = view.e;
  const double norm = e > 2 ? 28 : view.wide_norms ? 40 : 36;  // f32: nothing is cast
  double bytes = view.norms * norm * view.d + norm * view.normed_heads();
  bytes += 10 * e * (view.q + view.kv);                                         // RoPE: rotate, two products, a sum
  if (view.k.heads > view.k.kv_heads) bytes += e * (2 * view.kv + 2 * view.q);  // K and V repeated
  bytes += 2 * e * view.q;                                                      // attention's output made contiguous
  bytes += 2 * 3 * e * view.d;                                                  // residuals
  bytes += 5 * e * view.f;                                                      // activation, product
  bytes += 6 * e * view.sparse_gate();                                          // mean, deviation, cutoff, rectified
  if (view.laurel) bytes += (3 + 3 + 2) * e * view.d;                           // two sums, divided
  if (view.altup()) bytes += eager_altup(view.streams) * e * view.d;
  if (view.m.config.layer_scalar) bytes += 2 * e * view.d;
  const Request& r = *view.m.request;
  const bool wide = bytes_of(r.profile.adapters) > e;
  for (const Product& b : view.k.lora_b) bytes += 5 * e * b.out;  // scaled, added
  for (const Product& a : view.k.lora_a) {
    if (wide) bytes += 12 * a.in;                                    // cast to f32, and back for the product
    if (r.lora.dropout > 0) bytes += (wide ? 9 : 2 * e + 1) * a.in;  // read, written, the mask
  }
  // The magnitudes are as wide as the adapters, and so is what they multiply: both outputs are scaled, B's twice, then
  // added to each other and to the output, in place of the 5 above.
  const double scaled = std::max<double>(bytes_of(r.profile.adapters), e);
  for (const Product& p : view.k.dora) bytes += (9 * scaled - 2 * e) * p.out;
  double attention = 0, attention_back = 0;
  if (view.scores) {
    attention = (e > 2 ? 32 : 24) * view.row_scores();
    attention_back = (e > 2 ? 40 : 30) * view.row_scores();
  } else {
    attention = 2 * e * (view.q + view.kv);
    attention_back = 3 * attention;
  }
  const double kernels = 8 * (view.norms + (view.qk_norm ? 2 : 0) + (view.m.config.v_norm ? 1 : 0)) + 10 + 9 + 5 + 7 +
                         5.0 * static_cast<double>(view.k.lora_b.size()) +
                         5.0 * static_cast<double>(view.k.dora.size()) + (view.laurel ? 5 : 0) +
                         (view.altup() ? 24 : 0) + (view.sparse_gate() > 0 ? 6 : 0);
  return {bytes + attention, bytes + attention, 2 * bytes + attention_back, kernels};
}

LayerTraffic fused_traffic(const View& view) {
  const double e = view.e;
  double bytes = e * (view.norms * view.width + 2 * 3 * view.width);  // norms in and out, residuals
  bytes += 2 * e * (view.q + 2 * view.kv);                            // head norms and RoPE at once
  bytes += 3 * e * view.f + e * view.sparse_gate();                   // the gate once more for its mean and deviation
  if (view.laurel) bytes += 2 * e * view.width;
  if (view.altup()) bytes += fused_altup(view.streams) * e * view.width;
  for (const Product& b : view.k.lora_b) bytes += 2 * e * b.out;
  for (const Product& p : view.k.dora) bytes += e * p.out;  // reads the output of B, too
  if (view.m.request->lora.dropout > 0)                     // each adapter drops out its own copy of the input
    for (const Product& a : view.k.lora_a) bytes += 2 * e * a.in;
  double attention = 2 * e * (view.q + view.kv), keeping = attention, attention_back = 3 * attention;
  if (view.scores) {  // written, read for maximum and sum, read and written as probabilities, read
    const double kept = bytes_of(view.m.request->profile.scores);
    attention = 6 * e * view.row_scores();
    keeping = (4 * e + 2 * kept) * view.row_scores();
    // Writes the product's gradient; reads it with the kept scores for the sum and again for the scores' gradient,
    // which is
    // written and read twice; reads the kept scores for the values' gradient.
    attention_back = (e + 2 * (e + kept) + 3 * e + kept) * view.row_scores();
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
  const double routed = model.config.experts > 0 ? 4.0 * v.e * model.config.experts_per_token * v.d : 0;
  t.forward += routed;
  t.keeping += routed;
  t.backward += 2 * routed;
  return t;
}

bool repeats_dropped_product(const Request& request) {
  return request.stack == model::Stack::trl_fsdp && request.lora.dropout > 0;
}

// peft/tuners/lora/dora.py and torchtune/modules/peft/dora.py: B A is the output of both for the identity matrix; cast
// to the activations' type, scaled and added to W, of which the norms are taken.
RowNorms row_norms(const LocalModel& model, const LayerKind& kind) {
  const double e = activation_bytes(*model.request), own = bytes_of(model.request->profile.adapters);
  RowNorms norms;
  for (const Product& p : kind.dora) {
    const double identity = p.in * p.in * own, elements = p.in * p.out;
    norms.held = std::max(norms.held, identity + 3 * e * elements);
    norms.moved += identity + elements * ((own > e ? own + e : 0) + 2 * e + 3 * e + e);
    norms.kernels += 6;  // identity, cast, scaling, sum, norm, quotient; products are counted elsewhere
  }
  return norms;
}

double attended_keys(const LocalModel& model, const LayerKind& kind, double len) {
  if (model.request->profile.attention == StackProfile::Attention::materialised) return len;
  const double window = model.config.sliding_window;
  const bool sliding = kind.shape.attention == model::Attention::sliding && window > 0 && window < len;
  // Token i sees min(i, window) keys; averaged over the row. The engine multiplies a block of queries with every key
  // that one of them sees.
  const double block = model.request->stack == model::Stack::engine ? std::min<double>(len, sizes::kQueries) / 2 : 0;
  return block + (sliding ? window - window * window / (2 * len) : len / 2);
}

double logit_traffic(const StackProfile& profile) {
  // Eager: product, f32 copy, log-softmax, gradients and their bf16 copy; fused: f32 logits read for maximum, sum and
  // gradient.
  return profile.elementwise == StackProfile::Elementwise::eager ? 44 : 24;
}

namespace {

using model::Role;

constexpr std::array<std::pair<options::SavedActivation, Role>, 7> kProducts{
    {{options::SavedActivation::q_proj, Role::q_proj},
     {options::SavedActivation::k_proj, Role::k_proj},
     {options::SavedActivation::v_proj, Role::v_proj},
     {options::SavedActivation::o_proj, Role::o_proj},
     {options::SavedActivation::gate_proj, Role::gate_proj},
     {options::SavedActivation::up_proj, Role::up_proj},
     {options::SavedActivation::down_proj, Role::down_proj}}};

bool saves(const Request& request, options::SavedActivation what) {
  return std::find(request.train.saved.begin(), request.train.saved.end(), what) != request.train.saved.end();
}

}  // namespace

bool recomputes_product(const Request& request, const Product& product) {
  for (const auto& [saved, role] : kProducts)
    if (role == product.role && saves(request, saved)) return false;
  // A norm after the block reads the block's output in its backward.
  if (request.profile.recomputation == StackProfile::Recomputation::whole || request.model.post_norms) return true;
  const bool last = product.role == Role::down_proj || product.role == Role::experts_down;
  return !last && !(request.train.remat == model::Remat::block && product.role == Role::o_proj);
}

bool recomputes_attention(const Request& request) {
  return !saves(request, options::SavedActivation::attention);
}

double saved_bytes(const Request& request, const LayerKind& kind) {
  if (request.train.offload == options::Offload::host) return 0;
  double bytes = saves(request, options::SavedActivation::attention)
                     ? activation_bytes(request) * kind.q() + 4 * kind.heads
                     : 0;  // and the sums of its softmax
  for (const auto& [saved, role] : kProducts)
    if (const Product* p = kind.product(role); p && saves(request, saved)) bytes += activation_bytes(request) * p->out;
  return bytes;
}

}  // namespace mw::plan
