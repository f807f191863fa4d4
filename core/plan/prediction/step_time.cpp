// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/mesh/collectives/compute_sharding.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/model/config.h"
#include "core/plan/prediction/activations.h"
#include "core/plan/prediction/collective_time.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/request/estimate.h"
#include "core/plan/request/lengths.h"

namespace mw::plan {
namespace {

using Phase = Term::Phase;

const Efficiency kWholeVector{1, 1, 1, Origin::floor, "the peak of the vector units"};

// Rates of a device: peaks and efficiencies.
struct Rates {
  double flops, bytes;  // per second at the peak
  double fp8;           // the same of products in fp8; 0: they run in bf16
  double vector;        // operations of a TPU's vector units, or in f32 of the engine's processor; 0: unknown
  double fp8_share;     // of the fp8 peak
  const Efficiencies& e;
  double unit;            // of the matrix unit
  double expert_ways;     // devices that share the experts, whose tokens they exchange
  double activation = 2;  // bytes of an element
  bool engine = false;    // its kernels
};

Rates rates_of(const Request& request) {
  const hardware::Chip& c = request.target.chip;
  const double devices = std::max(1, c.devices_per_chip);
  const double fp8 = request.products == model::DType::fp8 ? c.fp8_flops.value / devices : 0;
  return {products_peak(request) / devices,
          c.memory_bandwidth.value / devices,
          fp8,
          c.vector_ops.value / devices,
          fp8_share(request).value,
          request.efficiencies,
          static_cast<double>(std::max(1, c.matrix_unit)),
          static_cast<double>(expert_ways(request)),
          static_cast<double>(activation_bytes(request)),
          request.stack == model::Stack::engine};
}

// The work of one device in a phase: floating-point operations by their limit, bytes and kernels.
struct Load {
  double flops = 0, attention_flops = 0, fp8_flops = 0;
  double vector_ops = 0;
  double bytes = 0;
  // Seconds that products wait for memory beyond their computing, and those by which grouped products are slower.
  double short_products = 0;
  double kernels = 0;

  Load operator*(double n) const {
    return {flops * n, attention_flops * n, fp8_flops * n, vector_ops * n, bytes * n, short_products * n, kernels * n};
  }
  Load& operator+=(const Load& o) {
    flops += o.flops;
    attention_flops += o.attention_flops;
    fp8_flops += o.fp8_flops;
    vector_ops += o.vector_ops;
    bytes += o.bytes;
    short_products += o.short_products;
    kernels += o.kernels;
    return *this;
  }
};

Load product(const Rates& rates, double tokens, double in, double out, double weight_bytes) {
  const double columns = rates.engine ? in + rates.e.engine.output_columns : round_up(in, rates.unit);
  const double flops = 2 * round_up(tokens, 8) * columns * round_up(out, rates.unit);
  const double bytes = in * out * weight_bytes + tokens * (in + out) * rates.activation;
  const double computing = flops / (rates.flops * rates.e.matmul.value);
  const double moving = bytes / (rates.bytes * rates.e.memory.value);
  return {.flops = flops, .short_products = std::max(0.0, moving - computing)};
}

// The experts of a layer that a device reads: of its own, those that the tokens of all devices sharing them choose.
double experts_read(const model::Config& config, double tokens, double ways) {
  return model::expected_experts(config, tokens * ways) / ways;
}

// The products of the chosen experts: all that the tokens are expected to choose are read, and each computes its rows.
Load product_of_experts(const Rates& rates, const model::Config& config, double tokens, const Product& x,
                        double weight_bytes) {
  const double read = experts_read(config, tokens, rates.expert_ways), chosen = std::max(1, config.experts_per_token);
  const bool gates = x.role == model::Role::experts_gate_up;
  const double in = gates ? x.in : x.in / chosen, out = gates ? x.out / chosen : x.out;
  const double rows = tokens * chosen + read * 7 / 2;  // each expert's rounded up to 8
  const double flops = 2 * rows * round_up(in, rates.unit) * round_up(out, rates.unit);
  const double bytes = read * in * out * weight_bytes + tokens * chosen * (in + out) * rates.activation;
  return {.flops = flops,
          .short_products = std::max(
              0.0, bytes / (rates.bytes * rates.e.memory.value) - flops / (rates.flops * rates.e.matmul.value))};
}

// Elements of the operands of a product.
double operands(const Rates& rates, const model::Config& config, double tokens, const Product& x) {
  const bool gates = x.role == model::Role::experts_gate_up;
  if (!gates && x.role != model::Role::experts_down) return tokens * x.in + x.in * x.out;
  const double chosen = std::max(1, config.experts_per_token);
  return tokens * x.in * (gates ? chosen : 1) + x.in * x.out / chosen * experts_read(config, tokens, rates.expert_ways);
}

// In fp8 each operand is read to find its maximum, read again and written as fp8.
Load product_of_layer(const Rates& rates, const model::Config& config, double tokens, const Product& x,
                      double weight_bytes) {
  const bool experts = x.role == model::Role::experts_gate_up || x.role == model::Role::experts_down;
  Load load = experts ? product_of_experts(rates, config, tokens, x, weight_bytes)
                      : product(rates, tokens, x.in, x.out, weight_bytes);
  const bool fp8 = rates.fp8 > 0;
  const double rate = fp8 ? rates.fp8 * rates.fp8_share : rates.flops * rates.e.matmul.value;
  if (experts) load.short_products += load.flops / rate * (1 / rates.e.experts.value - 1);
  if (!fp8) return load;
  std::swap(load.flops, load.fp8_flops);
  load.bytes += 5 * operands(rates, config, tokens, x);
  return load;
}

struct Pass {         // of micro-batches or of decode steps
  double tokens = 0;  // on a device
  double len = 0;     // of a row
  double keys = 0;    // that a query attends to at most (a cache's); 0: the row's
  double times = 1;   // in a step
};

// The priced collectives of a term.
struct Communication {
  Phase phase = Phase::forward;
  std::string_view part{};  // of a literal or a kind of layers
  Estimate seconds{};
  double hidden = 0;                                   // seconds that may hide
  double least_hidden = 0;                             // the same of seconds.high with the lowest shares
  double most_hidden = 0;                              // of seconds.low with the highest shares
  std::vector<std::pair<std::string, double>> sent{};  // collective: seconds
};

// Whether partial sums of the recomputation and of the backward hide behind the products of the other of the two: the
// recomputation of a layer needs nothing from the backward of the layers above it. MaxText's run scripts let XLA
// schedule collectives beside products that do not need them (--xla_tpu_overlap_compute_collective_tc,
// --xla_tpu_enable_async_collective_fusion; MaxText/configs/v5p/512b.sh).
bool sums_overlap_recomputation(const Request& request) {
  return request.stack == model::Stack::maxtext && request.work == Work::train &&
         request.train.remat != model::Remat::none;
}

enum class PriceDetail { values, text };  // values: neither intervals nor text

class CommunicationPricer {
 public:
  CommunicationPricer(const LocalModel& model, PriceDetail detail) : m_(model), r_(*model.request), detail_(detail) {}
  // `shape` is completed by complete_step_shape().
  std::vector<Communication> price(const mesh::StepShape& shape) {
    const mesh::StepShape whole = complete_step_shape(shape, r_);
    for (const mesh::Collective& c : step_collectives(r_, m_.config, m_.placement, whole)) price(c, whole.work);
    return std::move(all_);
  }

 private:
  Communication& of(Phase phase, std::string_view part) {
    for (Communication& c : all_)
      if (c.phase == phase && c.part == part) return c;
    return all_.emplace_back(Communication{.phase = phase, .part = part});
  }
  void price(const mesh::Collective& collective, mesh::StepKind work) {
    const double value = collective_value(collective, m_.layout, r_.target, r_.efficiencies);
    if (value <= 0) return;
    const double stands = collective.layer >= 0 ? m_.layers_represented[static_cast<size_t>(collective.layer)] : 1;
    const double times = stands * static_cast<double>(collective.calls);
    const bool sums = collective.cause == mesh::Cause::partial_sums ||
                      collective.cause == mesh::Cause::embedding_rows || collective.cause == mesh::Cause::softmax ||
                      collective.cause == mesh::Cause::logits || collective.cause == mesh::Cause::experts;
    const Efficiencies& e = r_.efficiencies;
    const bool waits = sums && !hides_behind_recomputation(collective.phase);
    const Efficiency& hides = waits ? e.overlap_sums : crosses_network(collective) ? e.overlap_network : e.overlap;
    Communication& c = of(phase_of(collective.phase, work), part_of(collective));
    c.hidden += value * times * hides.value;
    if (detail_ == PriceDetail::values) {
      c.seconds.value += value * times;
      return;
    }
    const Estimate each = collective_seconds(collective, m_.layout, r_.target, r_.efficiencies) * times;
    c.seconds += each;
    c.least_hidden += each.high * hides.low;
    c.most_hidden += each.low * hides.high;
    const std::string name = std::string(mesh::to_string(collective.kind)) + " over " + collective.axis;
    for (auto& [known, taken] : c.sent)
      if (known == name) {
        taken += each.value;
        return;
      }
    c.sent.emplace_back(name, each.value);
  }
  bool hides_behind_recomputation(mesh::Phase phase) const {
    return sums_overlap_recomputation(r_) && (phase == mesh::Phase::recompute || phase == mesh::Phase::backward);
  }
  bool crosses_network(const mesh::Collective& collective) const {
    return std::any_of(m_.layout.axes.begin(), m_.layout.axes.end(), [&](const mesh::AxisPlacement& p) {
      return p.axis == collective.axis && p.medium == mesh::Medium::network;
    });
  }
  static Phase phase_of(mesh::Phase phase, mesh::StepKind work) {
    constexpr Phase kPhases[]{Phase::forward, Phase::remat, Phase::backward, Phase::update};  // by mesh::Phase
    return work == mesh::StepKind::decode ? Phase::decode : kPhases[static_cast<size_t>(phase)];
  }
  std::string_view part_of(const mesh::Collective& collective) const {
    if (collective.phase == mesh::Phase::update) return "optimizer";
    if (collective.layer < 0)
      return collective.cause == mesh::Cause::softmax || collective.cause == mesh::Cause::logits ? "logits and loss"
                                                                                                 : "embedding";
    const LayerKind* kind = nullptr;
    for (const LayerKind& k : m_.kinds)
      if (k.layer <= collective.layer && (!kind || same(k, collective.layer))) kind = &k;
    return kind ? std::string_view(kind->name) : "layers";
  }
  bool same(const LayerKind& kind, int layer) const {
    const model::Layer& l = m_.config.layers[static_cast<size_t>(layer)];
    return kind.shape.attention == l.attention && kind.shape.has_k == l.has_k && kind.shape.mlp_dim == l.mlp_dim;
  }

  const LocalModel& m_;
  const Request& r_;
  PriceDetail detail_;
  std::vector<Communication> all_;
};

std::vector<Communication> communication_of(const LocalModel& model, const mesh::StepShape& shape, PriceDetail detail) {
  return CommunicationPricer(model, detail).price(shape);
}

class Builder {
 public:
  explicit Builder(const LocalModel& model) : m_(model), r_(*model.request), rates_(rates_of(r_)) {}

  void layers(Phase phase, const LayerKind& kind, const Pass& pass, double forwards, double backwards) {
    const double weight_bytes = bytes_of(r_.weights);
    const bool again = phase == Phase::remat;
    Load base, adapters, adapter_gradients;
    for (const Product& x : kind.products)
      if (!again || recomputes_product(r_, x))
        base += product_of_layer(rates_, m_.config, pass.tokens, x, weight_bytes);
    for (const auto* parts : {&kind.lora_a, &kind.lora_b})
      for (const Product& x : *parts) {
        adapters += adapter_product(pass.tokens, x);
        adapter_gradients += adapter_gradient(pass.tokens, x);
      }
    const bool materialised = r_.profile.attention == StackProfile::Attention::materialised;
    const double pairs = pass.keys > 0
                             ? keys_read(kind, pass.keys)
                             : attended_keys(m_, kind, pass.len) + (rates_.engine ? rates_.e.engine.query_keys : 0);
    const double attention = again && !recomputes_attention(r_) ? 0 : 4 * pass.tokens * pairs * kind.q();
    const LayerTraffic traffic = layer_traffic(m_, kind, pass.keys > 0 ? pass.keys : pass.len);
    Load load;
    load += base * (forwards + backwards);
    if (r_.method == model::TrainMethod::full) load += weight_gradients(base) * backwards;
    load += adapters * (forwards + backwards);
    load += adapter_gradients * backwards;
    load += row_norms_load(kind) * forwards;
    if (repeats_dropped_product(r_))
      for (const Product& x : kind.dora)
        load += product(rates_, pass.tokens, x.in, x.out, weight_bytes) * (forwards + backwards);
    load.vector_ops += dropout_ops(kind, pass.tokens) * forwards;
    const double attention_all = attention * (forwards + backwards * (materialised ? 2 : 2.5));
    (materialised || rates_.engine ? load.flops : load.attention_flops) += attention_all;
    if (rates_.engine && pass.keys == 0)
      load.vector_ops +=
          pass.tokens * kind.heads * rates_.e.engine.query_ops * (forwards * (attention > 0) + backwards);
    const bool keeps = phase == Phase::remat || (r_.work == Work::train && r_.train.remat == model::Remat::none);
    load.bytes += pass.tokens * (forwards * (keeps ? traffic.keeping : traffic.forward) + backwards * traffic.backward);
    load.kernels += traffic.kernels * (forwards + 2 * backwards);
    if (pass.keys > 0 && kind.shape.has_k) load.bytes += kv_read(kind, pass);
    add(phase, kind.name, kind.count, load * (kind.count * pass.times));
  }

  // The engine computes gradients of weights and of adapters in f32.
  double gradient_slowdown() const {
    const hardware::Chip& chip = r_.target.chip;
    return rates_.engine && chip.f32_flops ? std::max(1.0, chip.bf16_flops.value / chip.f32_flops.value) : 1;
  }
  Load weight_gradients(Load products) const {
    products.flops *= gradient_slowdown();
    return products;
  }
  // The engine multiplies adapters with the rows of their base, and reads these rows for their gradients.
  Load adapter_product(double tokens, const Product& x) const {
    if (rates_.engine) return {.flops = 2 * tokens * x.in * x.out};
    return product(rates_, tokens, x.in, x.out, bytes_of(r_.profile.adapters));
  }
  Load adapter_gradient(double tokens, const Product& x) const {
    if (!rates_.engine) return adapter_product(tokens, x);
    return {.flops = 2 * tokens * x.in * x.out * gradient_slowdown(), .bytes = tokens * (x.in + x.out) * 4};
  }

  // DoRA: a pass computes B A of every adapted projection, as outputs for the identity, and norms of W + B A.
  Load row_norms_load(const LayerKind& kind) const {
    const RowNorms norms = row_norms(m_, kind);
    const double bytes = bytes_of(r_.profile.adapters), rank = r_.lora.rank;
    Load load{.bytes = norms.moved, .kernels = norms.kernels};
    for (const Product& p : kind.dora) {
      load += product(rates_, p.in, p.in, rank, bytes);
      load += product(rates_, p.in, rank, p.out, bytes);
    }
    return load;
  }

  // JAX draws the mask of an adapter's input with threefry-2x32, one block for each element
  // (jax_threefry_partitionable, the default): 20 rounds of an addition, a rotation in three operations and an
  // exclusive or, five injections of the key with three additions, and the comparison with the rate.
  double dropout_ops(const LayerKind& kind, double tokens) const {
    constexpr double kOps = 20 * 5 + 5 * 3 + 4;
    const bool jax = r_.stack == model::Stack::tunix || r_.stack == model::Stack::torchax;
    if (!jax || r_.lora.dropout == 0 || r_.work != Work::train || rates_.vector <= 0) return 0;
    double elements = 0;
    for (const Product& a : kind.lora_a) elements += a.in;
    return kOps * tokens * elements;
  }

  // The embedding, all layers, and the output matrix with its softmax for `logit_tokens` tokens.
  void forward(Phase phase, const Pass& pass, double logit_tokens) {
    embedding(phase, pass);
    altup(phase, pass, 2);
    for (const LayerKind& k : m_.kinds) layers(phase, k, pass, 1, 0);
    logits(phase, logit_tokens, 1, 0.5, pass.times);
  }
  void embedding(Phase phase, const Pass& pass) {
    Load load{.bytes = pass.tokens * m_.config.dim * 2 * rates_.activation};
    if (m_.config.ple_dim > 0)
      load += product(rates_, pass.tokens, m_.config.dim, static_cast<double>(m_.layers()) * m_.config.ple_dim, 2);
    add(phase, "embedding", 0, load * pass.times);
  }
  // AltUp (Gemma 3n) makes its other streams from the embedding and joins them before the output: for each stream a
  // product of the width with itself and a pass that gives it the magnitude of the first.
  void altup(Phase phase, const Pass& pass, double products) {
    const double matrices = products * (model::residual_streams(m_.config) - 1), d = m_.config.dim;
    if (matrices == 0) return;
    Load load = product(rates_, pass.tokens, d, d, bytes_of(r_.weights));
    load.bytes += 2 * pass.tokens * d * rates_.activation;
    add(phase, "embedding", 0, load * (matrices * pass.times));
  }
  void logits(Phase phase, double tokens, double products, double traffic_share, double times) {
    Load load = product(rates_, tokens, m_.config.dim, m_.vocab, m_.head_bytes()) * products;
    load.bytes += tokens * m_.vocab * logit_traffic(r_.profile) * traffic_share;
    load.kernels += 8 * products;
    add(phase, "logits and loss", 0, load * times);
  }
  void update(double accumulation) {
    const TensorBytes t =
        r_.method == model::TrainMethod::full ? m_.weights(full_weights(r_)) : m_.adapters(r_.profile.adapters);
    const double split = r_.profile.optimizer == StackProfile::OptimizerState::over_batch ? m_.batch_ways : 1;
    const double gradient = bytes_of(r_.profile.gradients), moment = bytes_of(r_.profile.moments);
    const double weight = t.elements > 0 ? t.unpadded / t.elements : 0;
    const double eager =
        r_.profile.elementwise == StackProfile::Elementwise::eager ? 3 : 1;  // a kernel for each operation
    Load load{.bytes = t.elements / split * eager * (2 * weight + gradient + 4 * moment)};
    load.bytes += accumulation * 3 * gradient * t.elements;
    load.kernels = eager > 1 ? 15 : 1;
    add(Phase::update, "optimizer", 0, load);
  }

  void clear() { parts_.clear(); }

  // The value of finish().seconds, without text and without memory of its own.
  double seconds(double fixed, const std::vector<Communication>& all) {
    double compute = 0, memory = 0, communication = 0, hidden = 0;
    for (const Communication& c : all) part(c.phase, c.part, 0);
    for (const Part& p : parts_) {
      const double computing = compute_seconds(p.load), moving = memory_seconds(p.load);
      const Communication* c = find(all, p);
      compute += computing;
      memory += moving;
      communication += c ? c->seconds.value : 0;
      hidden += c ? std::min(c->hidden, computing + moving) : 0;
    }
    return compute + memory + communication + fixed * r_.efficiencies.step_s.value - hidden;
  }

  StepTime finish(double fixed, const std::vector<Communication>& all) {
    StepTime step;
    double least_hidden = 0, most_hidden = 0;
    for (const Communication& c : all) part(c.phase, c.part, 0);
    for (const Part& p : parts_) {
      Term t{.phase = p.phase,
             .part = std::string(p.name),
             .layers = p.layers,
             .compute = compute_of(p.load),
             .memory = memory_of(p.load),
             .communication = {}};
      if (const Communication* c = find(all, p)) {
        t.communication = c->seconds;
        t.communication.inputs = sent_text(c->sent);
        t.hidden = std::min(c->hidden, t.compute.value + t.memory.value);
        least_hidden += std::min(c->least_hidden, t.compute.high + t.memory.high);
        most_hidden += std::min(c->most_hidden, t.compute.low + t.memory.low);
      }
      step.compute += t.compute;
      step.memory += t.memory;
      step.communication += t.communication;
      step.hidden += t.hidden;
      step.terms.push_back(std::move(t));
    }
    const Efficiency& f = r_.efficiencies.step_s;
    step.fixed = fixed * f;
    step.fixed.formula = "steps x seconds of the host";
    step.fixed.inputs = fixed > 0 ? (count(fixed) * seconds_text(f.value)).text : std::string();
    step.seconds = step.compute + step.memory + step.communication + step.fixed;
    step.seconds.value -= step.hidden;
    step.seconds.low -= most_hidden;
    step.seconds.high -= least_hidden;
    step.seconds.formula = "products + passes over memory + collectives - overlap + fixed";
    step.seconds.inputs =
        (seconds_text(step.compute.value) + seconds_text(step.memory.value) + seconds_text(step.communication.value) -
         seconds_text(step.hidden) + seconds_text(step.fixed.value))
            .text;
    step.seconds.source = r_.profile.source;
    if (!r_.calibrated.empty()) step.seconds.source += "; " + r_.calibrated;
    step.overlap = number_text(100 * r_.efficiencies.overlap.value, 3) + " % of weight gathers and gradient sums (" +
                   number_text(100 * r_.efficiencies.overlap_network.value, 3) + " % of those over the network) and " +
                   number_text(100 * r_.efficiencies.overlap_sums.value, 3) +
                   " % of partial sums may hide behind the computing of their phase";
    if (sums_overlap_recomputation(r_)) step.overlap += ", those of the backward like gathers behind recomputation";
    return step;
  }

 private:
  double keys_read(const LayerKind& kind, double context) const {
    const bool sliding = kind.shape.attention == model::Attention::sliding && m_.config.sliding_window > 0;
    const bool whole = r_.profile.attention == StackProfile::Attention::materialised && !r_.sliding_window_kv;
    return sliding && !whole ? std::min<double>(context, m_.config.sliding_window) : context;
  }
  double kv_read(const LayerKind& kind, const Pass& pass) const {
    return pass.tokens * keys_read(kind, pass.keys) * 2 * kind.kv() * bytes_of(r_.kv);
  }

  // The work from which the times of a term follow.
  struct Part {
    Phase phase = Phase::forward;
    std::string_view name{};  // of a literal or a kind of layers
    int layers = 0;
    Load load{};
  };

  Part& part(Phase phase, std::string_view name, int layers) {
    for (Part& p : parts_)
      if (p.phase == phase && p.name == name) return p;
    return parts_.emplace_back(Part{phase, name, layers, {}});
  }
  static const Communication* find(const std::vector<Communication>& all, const Part& part) {
    for (const Communication& c : all)
      if (c.phase == part.phase && c.part == part.name) return &c;
    return nullptr;
  }

  static std::string sent_text(const std::vector<std::pair<std::string, double>>& sent) {
    Expression sum;
    for (const auto& [collective, taken] : sent) sum = sum + labelled(seconds_text(taken), collective);
    return sum.text;
  }

  void add(Phase phase, std::string_view name, int layers, const Load& load) { part(phase, name, layers).load += load; }

  // The values of compute_of() and memory_of().
  double compute_seconds(const Load& load) const {
    double seconds = 0;
    const auto add = [&](double flops, double peak, double share) {
      if (flops > 0 && share > 0) seconds += flops / peak / share;
    };
    add(load.flops, rates_.flops, rates_.e.matmul.value);
    add(load.attention_flops, rates_.flops, rates_.e.attention.value);
    add(load.fp8_flops, rates_.fp8, rates_.fp8_share);
    if (rates_.vector > 0) add(load.vector_ops, rates_.vector, 1);
    return seconds;
  }
  double memory_seconds(const Load& load) const {
    const double share = rates_.e.memory.value;
    return (share > 0 ? load.bytes / rates_.bytes / share : 0) + load.short_products +
           load.kernels * rates_.e.kernel_s.value;
  }

  Estimate compute_of(const Load& load) const {
    Estimate compute;
    Expression shown;
    const auto add = [&](double flops, double peak, const Efficiency& share, const char* what) {
      if (flops <= 0 || peak <= 0) return;
      compute += flops / peak / share;
      const Expression each = tera(flops, "TFLOP") / (tera(peak, "TFLOP/s") * number(share.value));
      shown = shown + (what ? labelled(each, what) : each);
    };
    add(load.flops, rates_.flops, rates_.e.matmul, nullptr);
    add(load.attention_flops, rates_.flops, rates_.e.attention, "attention");
    add(load.fp8_flops, rates_.fp8, fp8_share(r_), "fp8");
    add(load.vector_ops, rates_.vector, kWholeVector, rates_.engine ? "queries" : "dropout");
    compute.formula = "FLOP / (peak x share)";
    compute.inputs = shown.text;
    compute.source = rates_.e.matmul.source;
    return compute;
  }

  Estimate memory_of(const Load& load) const {
    Estimate memory = load.bytes / rates_.bytes / rates_.e.memory;
    Expression shown;
    if (memory.value > 0) shown = giga(load.bytes, "GB") / (giga(rates_.bytes, "GB/s") * number(rates_.e.memory.value));
    memory += {.value = load.short_products, .low = load.short_products, .high = load.short_products};
    shown = shown + labelled(seconds_text(load.short_products), "short and grouped products");
    const Efficiency& kernel = rates_.e.kernel_s;
    memory += load.kernels * kernel;
    shown = shown + labelled(count(load.kernels) * seconds_text(kernel.value), "kernels");
    memory.origin = rates_.e.memory.origin;
    memory.formula = "bytes / (bandwidth x share) + waits of short and grouped products + kernels x launch";
    memory.inputs = shown.text;
    memory.source = rates_.e.memory.source;
    return memory;
  }

  static Expression tera(double n, const char* unit) { return {n, number_text(n / 1e12) + " " + unit}; }
  static Expression giga(double n, const char* unit) { return {n, number_text(n / 1e9) + " " + unit}; }

  const LocalModel& m_;
  const Request& r_;
  Rates rates_;
  std::vector<Part> parts_;
};

// Whether a collective sums the output of a block under remat whose last product is not recomputed.
bool sums_what_nothing_reads(const Request& request, const mesh::Collective& c) {
  if (c.phase != mesh::Phase::recompute || c.cause != mesh::Cause::partial_sums ||
      c.kind == mesh::CollectiveKind::all_gather)
    return false;
  const std::string_view block = std::string_view(c.tensor).substr(c.tensor.rfind('.') + 1);
  for (const auto& [name, last] : {std::pair{mesh::Block::attention, model::Role::o_proj},
                                   {mesh::Block::mlp, model::Role::down_proj},
                                   {mesh::Block::experts, model::Role::experts_down}})
    if (block == mesh::to_string(name)) return !recomputes_product(request, {.role = last});
  return false;
}

// Rows for which a compiled decode step on a TPU takes its time. Measured steps of Gemma 3 1B on v5e jump from 64 to 68
// and from 128 to 132 rows ("Sizing gemma3 for TPUv5-n", plotted only): whole tiles of 64 rows beyond the first, 8
// within it. That the cause is tiling is a hypothesis.
double decoded_rows(const Request& request, double rows) {
  if (!request.profile.static_shapes || request.target.chip.vendor != hardware::Vendor::tpu) return rows;
  return round_up(rows, rows > 64 ? 64 : 8);
}

mesh::StepShape train_shape(const Request& r, double slowest) {
  return {.work = r.method == model::TrainMethod::full ? mesh::StepKind::train_full : mesh::StepKind::train_lora,
          .rows = r.train.batch,
          .tokens = std::llround(slowest),
          .accumulation = std::max(1, r.train.accumulation),
          .recompute = r.train.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers};
}

// Adds a training step with RowStatistics::slowest tokens a row, because the gathers and sums of every layer make the
// devices wait for the one with the longest rows.
void add_training(const LocalModel& model, const RowStatistics& rows, Builder& b) {
  const Request& r = *model.request;
  const double micro = std::max(1, r.train.accumulation);
  const Pass pass{.tokens = rows_on_device(model, r.train.batch) * rows.slowest, .len = rows.attended, .times = micro};
  const double with_loss = pass.tokens * r.train.loss_share;
  b.forward(Phase::forward, pass, with_loss);
  if (r.train.loss_chunk > 0 && r.profile.recomputes_logits) b.logits(Phase::remat, with_loss, 1, 0, micro);
  const bool full = r.method == model::TrainMethod::full;
  b.logits(Phase::backward, with_loss, full ? 1 + b.gradient_slowdown() : 1, 0.5, micro);
  b.altup(Phase::backward, pass, full ? 4 : 1);  // adapters need the gradient of the joined streams only
  for (const LayerKind& k : model.kinds) {
    if (r.train.remat != model::Remat::none) b.layers(Phase::remat, k, pass, 1, 0);
    b.layers(Phase::backward, k, pass, 0, 1);
  }
  b.update(micro);
}

// The priced collectives of the steps of one model; those of other sizes of the batch are forgotten.
class KnownCommunication {
 public:
  const std::vector<Communication>& of(const LocalModel& model, const mesh::StepShape& shape) {
    const StackProfile& profile = model.request->profile;
    const Key key{static_cast<std::int64_t>(shape.work),
                  shape.rows,
                  shape.tokens,
                  shape.accumulation,
                  static_cast<std::int64_t>(model.request->train.remat),
                  bytes_of(profile.adapters),
                  bytes_of(profile.gradients)};
    for (const Priced& p : known_)
      if (p.key == key) return p.communication;
    if (!known_.empty() && known_.front().key[1] != key[1]) known_.clear();
    return known_.emplace_back(Priced{key, communication_of(model, shape, PriceDetail::values)}).communication;
  }

 private:
  // Everything that differs between the requests of a model and on which the collectives of a step depend.
  using Key = std::array<std::int64_t, 7>;
  struct Priced {
    Key key;
    std::vector<Communication> communication;
  };
  std::vector<Priced> known_;
};

// A pass forward: its collectives, its rows on a device, and the host's steps.
struct ForwardStep {
  mesh::StepShape shape;
  Phase phase = Phase::forward;
  Pass pass{};
  double logit_tokens = 0, fixed = 1;
};
StepTime time_of(const LocalModel& model, const ForwardStep& step) {
  Builder b(model);
  b.forward(step.phase, step.pass, step.logit_tokens);
  return b.finish(step.fixed, communication_of(model, step.shape, PriceDetail::text));
}

ForwardStep forward_step(const LocalModel& model) {
  const ForwardWork& f = model.request->forward;
  const Pass pass{.tokens = rows_on_device(model, f.batch) * f.len, .len = static_cast<double>(f.len)};
  return {.shape = {.work = mesh::StepKind::forward, .rows = f.batch, .tokens = f.len},
          .pass = pass,
          .logit_tokens = pass.tokens};
}
ForwardStep prefill_step(const LocalModel& model, double rows, double len) {
  const double own = std::ceil(rows / model.batch_ways);
  return {.shape = {.work = mesh::StepKind::forward, .rows = std::llround(rows), .tokens = std::llround(len)},
          .pass = {.tokens = own * len, .len = len},
          .logit_tokens = own};
}
ForwardStep decode_step(const LocalModel& model, double rows, double context) {
  const Pass pass{
      .tokens = decoded_rows(*model.request, std::ceil(rows / model.batch_ways)), .len = 1, .keys = context};
  return {.shape = {.work = mesh::StepKind::decode, .rows = std::llround(rows), .tokens = 1},
          .phase = Phase::decode,
          .pass = pass,
          .logit_tokens = pass.tokens,
          .fixed = serves(model.request->stack) ? 1.0 : 0.0};
}

}  // namespace

double round_up(double n, double to) {
  return to > 1 ? std::ceil(n / to) * to : n;
}

mesh::StepShape step_shape(const LocalModel& model) {
  const Request& r = *model.request;
  mesh::StepShape shape;
  if (r.work == Work::train)
    shape = train_shape(r, train_rows(model).slowest);
  else if (r.work == Work::forward)
    shape = {.work = mesh::StepKind::forward, .rows = r.forward.batch, .tokens = r.forward.len};
  else
    shape = {.work = mesh::StepKind::decode, .rows = r.work == Work::rollout ? r.rollout.batch : r.serve.max_num_seqs};
  return complete_step_shape(shape, r);
}

mesh::StepShape complete_step_shape(mesh::StepShape shape, const Request& request) {
  if (request.stack == model::Stack::engine) {
    const mesh::StepShape own = mesh::engine_step({.work = shape.work, .weight_bytes = bytes_of(request.weights)});
    shape.residual = own.residual;
    shape.weight_bytes = own.weight_bytes;
    shape.adapter_bytes = own.adapter_bytes;
    shape.activation_bytes = own.activation_bytes;
    shape.gradient_bytes = own.gradient_bytes;
    shape.logit_bytes = own.logit_bytes;
    return shape;
  }
  shape.batch_axes = batch_axes(request);
  if (serves(request.stack)) shape.exchange = mesh::ExpertExchange::gather;
  shape.weight_bytes = bytes_of(request.weights);
  shape.adapter_bytes = bytes_of(request.profile.adapters);
  shape.activation_bytes = activation_bytes(request);
  shape.gradient_bytes = bytes_of(request.profile.gradients);
  shape.residual = request.profile.residual == StackProfile::Residual::sharded && shape.work != mesh::StepKind::decode
                       ? mesh::ResidualLayout::split
                       : mesh::ResidualLayout::whole;
  return shape;
}

std::vector<mesh::Collective> step_collectives(const Request& request, const model::Config& config,
                                               const mesh::Placement& placement, const mesh::StepShape& shape) {
  std::vector<mesh::Collective> list = mesh::collectives(config, request.mesh, placement, shape);
  std::erase_if(list, [&](const mesh::Collective& c) { return sums_what_nothing_reads(request, c); });
  return request.profile.parameters == StackProfile::Parameters::gathered ? mesh::fuse_by_layer(list) : list;
}

RowStatistics train_rows(const LocalModel& model) {
  const Request& r = *model.request;
  const bool shares_threads = r.engine && model.batch_ways > r.engine->threads;  // so that no thread waits
  return row_statistics(r.lengths, rows_on_device(model, r.train.batch), shares_threads ? 1 : model.batch_ways);
}

StepTime train_time(const LocalModel& model) {
  const RowStatistics rows = train_rows(model);
  Builder b(model);
  add_training(model, rows, b);
  return b.finish(std::max(1, model.request->train.accumulation),
                  communication_of(model, train_shape(*model.request, rows.slowest), PriceDetail::text));
}

struct StepSeconds::Impl {
  const LocalModel& model;
  Builder builder;
  KnownCommunication communication{};

  double of(const ForwardStep& step) {
    builder.clear();
    builder.forward(step.phase, step.pass, step.logit_tokens);
    return builder.seconds(step.fixed, communication.of(model, step.shape));
  }
};

StepSeconds::StepSeconds(const LocalModel& model) : impl_(new Impl{model, Builder(model)}) {}
StepSeconds::~StepSeconds() = default;

double StepSeconds::train(const RowStatistics& rows) {
  Impl& i = *impl_;
  const Request& r = *i.model.request;
  i.builder.clear();
  add_training(i.model, rows, i.builder);
  return i.builder.seconds(std::max(1, r.train.accumulation),
                           i.communication.of(i.model, train_shape(r, rows.slowest)));
}

StepTime forward_time(const LocalModel& model) {
  return time_of(model, forward_step(model));
}
StepTime prefill_time(const LocalModel& model, double rows, double len) {
  return time_of(model, prefill_step(model, rows, len));
}
StepTime decode_time(const LocalModel& model, double rows, double context) {
  return time_of(model, decode_step(model, rows, context));
}

double StepSeconds::forward() {
  return impl_->of(forward_step(impl_->model));
}
double StepSeconds::prefill(double rows, double len) {
  return impl_->of(prefill_step(impl_->model, rows, len));
}
double StepSeconds::decode(double rows, double context) {
  return impl_->of(decode_step(impl_->model, rows, context));
}

}  // namespace mw::plan
