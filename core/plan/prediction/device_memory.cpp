// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/device_memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/mesh/layout/size_constraints.h"
#include "core/plan/prediction/activations.h"
#include "core/plan/request/estimate.h"
#include "core/plan/request/lengths.h"

namespace mw::plan {
namespace {

using C = MemoryCategory;

// The name of a buffer and the arithmetic of its bytes, made only for plans that are shown.
struct Derivation {
  std::string name, words;  // words: the factors of `needed`, or where a given size comes from
  Expression needed{};      // bytes without padding of tiles; without text: the size is given
};

Buffer described(C category, double bytes, Derivation from) {
  const Bytes held(std::llround(bytes));
  if (from.needed.text.empty()) return {std::move(from.name), category, held, held, std::move(from.words)};
  const double padding = std::round(bytes - from.needed.value);
  const Expression shown = from.needed + labelled(amount(padding), "padding of tiles");
  return {std::move(from.name), category, held, Bytes(std::llround(from.needed.value)),
          from.words + " = " + shown.text};
}

enum class Detail { totals, buffers };

// Memory of a device at an instant: bytes by category and, with Detail::buffers, each buffer.
class Buffers {
 public:
  explicit Buffers(Detail detail) : detail_(detail) {}
  template <class Derive>
  void add(C category, double bytes, const Derive& derive) {
    const Bytes held(std::llround(bytes));
    if (held.value <= 0) return;
    totals_[category] += held;
    if (detail_ == Detail::buffers) list_.push_back(described(category, bytes, derive()));
  }
  void add(const Buffers& others) {
    for (size_t c = 0; c < kMemoryCategories; ++c) totals_.bytes[c] += others.totals_.bytes[c];
    list_.insert(list_.end(), others.list_.begin(), others.list_.end());
  }
  const Ledger& totals() const { return totals_; }
  Bytes total() const { return totals_.total(); }
  const std::vector<Buffer>& list() const { return list_; }

 private:
  Detail detail_;
  Ledger totals_;
  std::vector<Buffer> list_;
};

struct Instant {
  std::string name;
  Buffers buffers;
};

struct MatrixSize {
  double rows, columns;
  double width;  // bytes per element, of all copies
};
double matrix_bytes(const LocalModel& model, const MatrixSize& size) {
  const int element = size.width >= 4 ? 4 : 2;
  const std::array shape{static_cast<std::int64_t>(size.rows), static_cast<std::int64_t>(size.columns)};
  const auto padded =
      static_cast<double>(mesh::padded_bytes(shape, element, mesh::tile_of(model.request->target.chip, element)));
  return padded * size.width / element;
}
struct MatrixName {
  const char *name, *words;
};
void add_matrix(const LocalModel& model, Buffers& to, C category, const MatrixSize& size, const MatrixName& name) {
  to.add(category, matrix_bytes(model, size), [&] {
    return Derivation{name.name, name.words, count(size.rows) * count(size.columns) * bytes_each(size.width)};
  });
}

// Weights, adapters and the runtime's memory, which are held all the time.
Buffers resident(const LocalModel& model, model::DType type, Detail detail) {
  const Request& r = *model.request;
  Buffers out(detail);
  const TensorBytes& w = model.weights(type);
  const char* words = "elements on this device x bytes";
  out.add(C::weights, w.bytes, [&] {
    const Expression stored = count(w.elements) * bytes_each(bytes_of(type));
    return Derivation{"base weights", words,
                      stored + labelled(amount(w.unpadded - stored.value), "more for what stays in bf16")};
  });
  if (r.other_models > 0)
    out.add(C::weights, r.other_models * w.bytes, [&] {
      return Derivation{"other copies of the base", "copies x weights", count(r.other_models) * amount(w.bytes)};
    });
  if (r.method == model::TrainMethod::lora) {
    const TensorBytes& a = model.adapters(r.profile.adapters);
    out.add(C::adapters, a.bytes, [&] {
      return Derivation{"adapters", words, count(a.elements) * bytes_each(bytes_of(r.profile.adapters))};
    });
  }
  const Efficiency& runtime = r.efficiencies.runtime_bytes;
  out.add(C::runtime, runtime.value, [&] { return Derivation{"runtime", runtime.source}; });
  return out;
}

const TensorBytes& trainable(const LocalModel& model, model::DType type) {
  return model.request->method == model::TrainMethod::full ? model.weights(type) : model.adapters(type);
}

void add_training_state(const LocalModel& model, Buffers& out) {
  const Request& r = *model.request;
  const StackProfile& h = r.profile;
  const double split = h.optimizer == StackProfile::OptimizerState::over_batch ? model.batch_ways : 1;
  const TensorBytes& moments = trainable(model, h.moments);
  out.add(C::optimizer, 2 * moments.bytes / split, [&] {
    return Derivation{"Adam's moments", "2 x trainables x bytes",
                      count(2) * count(moments.elements / split) * bytes_each(bytes_of(h.moments))};
  });
  if (r.method == model::TrainMethod::full && h.master_weights) {
    const TensorBytes& masters = model.weights(model::DType::f32);
    out.add(C::optimizer, masters.bytes / split, [&] {
      return Derivation{"f32 masters", "weights x 4 B", count(masters.elements / split) * bytes_each(4)};
    });
  }
}

// A compiled step holds the gradients of a micro-batch in addition to their sum.
void add_gradients(const LocalModel& model, Buffers& out) {
  const StackProfile& h = model.request->profile;
  const TensorBytes& gradients = trainable(model, h.gradients);
  const double copies = h.static_shapes && model.request->train.accumulation > 1 ? 2 : 1;
  out.add(C::gradients, copies * gradients.bytes, [&] {
    const Expression once = count(gradients.elements) * bytes_each(bytes_of(h.gradients));
    return Derivation{"gradients",
                      copies > 1 ? "sum and this micro-batch's: 2 x trainables x bytes" : "trainables x bytes",
                      copies > 1 ? count(copies) * once : once};
  });
}

// With accumulation the sum over micro-batches is allocated from the start.
bool gradients_come_late(const Request& request) {
  return request.profile.gradient_buffers == StackProfile::GradientBuffers::late && request.train.accumulation <= 1;
}

// Each layer gates its part of them, in the forward and again in the backward.
void add_per_layer_inputs(const LocalModel& model, Buffers& out, double tokens) {
  const double width = static_cast<double>(model.layers()) * model.config.ple_dim;
  if (width > 0)
    add_matrix(model, out, C::activations, {tokens, width, static_cast<double>(activation_bytes(*model.request))},
               {"per-layer inputs", "tokens x (layers x width of an input) x bytes"});
}

// Activations that the forward keeps for the backward.
void add_kept(const LocalModel& model, Buffers& out, double tokens, double len) {
  const Request& r = *model.request;
  add_per_layer_inputs(model, out, tokens);
  double kept = 0, saved = 0;
  for (const LayerKind& k : model.kinds) {
    kept += k.count * layer_memory(model, k, len).kept() * tokens;
    saved += k.count * saved_bytes(r, k) * tokens;
  }
  if (r.train.remat == model::Remat::none)
    return out.add(C::activations, kept, [&] {
      return Derivation{"activations of all layers", "tokens x bytes kept per token, all layers",
                        count(tokens) * amount(kept / tokens)};
    });
  const bool blocks = r.train.remat == model::Remat::block;
  const double each = (blocks ? 2 : 1) * model::residual_streams(model.config);
  if (r.train.offload == options::Offload::none)
    add_matrix(
        model, out, C::activations,
        {each * model.layers() * tokens, model.width, static_cast<double>(activation_bytes(r))},
        {blocks ? "saved inputs of all blocks" : "saved inputs of all layers", "layers x tokens x width x bytes"});
  out.add(C::activations, saved, [&] {
    return Derivation{"saved outputs of all layers", "tokens x bytes saved per token, all layers",
                      count(tokens) * amount(saved / tokens)};
  });
}

// Gathered weights of the current layer and the prefetched ones.
void add_gather_buffers(const LocalModel& model, Buffers& out) {
  double largest = 0;
  for (const LayerKind& k : model.kinds) largest = std::max(largest, k.gathered);
  const double layers = 1 + model.request->profile.prefetched_layers, each = bytes_of(model.request->weights);
  out.add(C::collectives, layers * largest * each, [&] {
    return Derivation{"gathered layers", "(1 + prefetched) x largest layer x bytes",
                      count(layers) * count(largest) * bytes_each(each)};
  });
}
void add_gathered_head(const LocalModel& model, Buffers& out) {
  const double each = bytes_of(model.request->weights);
  out.add(C::collectives, model.head_gathered * each, [&] {
    return Derivation{"gathered embedding", "elements x bytes", count(model.head_gathered) * bytes_each(each)};
  });
}

// Fragmentation of the allocator if sizes vary between steps.
void add_fragmentation(const LocalModel& model, Buffers& out) {
  const Request& r = *model.request;
  const bool varies = r.profile.elementwise == StackProfile::Elementwise::eager && r.lengths.rows == RowLayout::ragged;
  if (!varies) return;
  const double dynamic = static_cast<double>((out.totals()[C::activations] + out.totals()[C::logits]).value);
  const double share = r.efficiencies.fragmentation.value;
  out.add(C::workspace, dynamic * share, [&] {
    return Derivation{"allocator's holes", "activations and logits x share of holes", amount(dynamic) * number(share)};
  });
}

DeviceMemory finish(const LocalModel& model, std::vector<Instant> instants) {
  const Request& r = *model.request;
  DeviceMemory out;
  out.capacity = device_capacity(r);
  const Instant* peak = &instants.front();
  for (Instant& i : instants) {
    add_fragmentation(model, i.buffers);
    for (size_t c = 0; c < kMemoryCategories; ++c)
      out.category_peaks.bytes[c] = std::max(out.category_peaks.bytes[c], i.buffers.totals().bytes[c]);
    if (i.buffers.total() > peak->buffers.total()) peak = &i;
  }
  out.peak_instant = peak->name;
  out.buffers = peak->buffers.list();
  std::stable_sort(out.buffers.begin(), out.buffers.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  double unsure = 0;
  Expression sum;
  for (const Buffer& b : out.buffers) {
    out.at_peak[b.category] += b.bytes;
    sum = sum + amount(static_cast<double>(b.bytes.value));
    if (b.category == C::activations || b.category == C::logits || b.category == C::workspace)
      unsure += static_cast<double>(b.bytes.value);
  }
  const auto value = static_cast<double>(out.at_peak.total().value);
  const Efficiency& runtime = r.efficiencies.runtime_bytes;
  out.total = {.value = value,
               .low = value - 0.15 * unsure - (runtime.value - runtime.low),
               .high = value + 0.15 * unsure + (runtime.high - runtime.value),
               .origin = runtime.origin,
               .formula = "sum of the buffers at " + out.peak_instant,
               .inputs = sum.text,
               .source = "shapes and shards; working sets within 15 % of published ones"};
  return out;
}

struct Widest {
  LayerMemory memory;
  const LayerKind* kind = nullptr;
  double bytes = 0;
};
template <class Size>
Widest widest(const LocalModel& model, double len, Size size) {
  Widest w;
  for (const LayerKind& k : model.kinds) {
    const LayerMemory memory = layer_memory(model, k, len);
    if (const double bytes = size(memory); !w.kind || bytes > w.bytes) w = {memory, &k, bytes};
  }
  return w;
}

std::string one_of(const LayerKind& kind) {  // "sliding layers" -> "a sliding layer"
  const auto at = kind.name.find("layers");
  return "a " + kind.name.substr(0, at) + "layer" + kind.name.substr(at + 6);
}

void add_working_set(Buffers& out, const Widest& wide, double tokens, const char* words = "tokens x bytes per token") {
  out.add(C::activations, wide.bytes * tokens, [&] {
    return Derivation{"working set of " + one_of(*wide.kind), words, count(tokens) * amount(wide.bytes)};
  });
}

void add_last_hidden_states(const LocalModel& model, Buffers& out, double tokens) {
  add_matrix(model, out, C::activations,
             {tokens, static_cast<double>(model.config.dim), static_cast<double>(activation_bytes(*model.request))},
             {"last hidden states", "tokens x width x bytes"});
}

struct LogitRows {
  double rows = 0;
  int chunk = 0;
  double width = 0;  // bytes of a logit
  MatrixSize size(const LocalModel& model) const {
    return {chunk > 0 ? std::min<double>(rows, chunk) : rows, model.vocab, width};
  }
};
void add_logits(const LocalModel& model, Buffers& out, const LogitRows& logits) {
  add_matrix(model, out, C::logits, logits.size(model),
             {logits.chunk > 0 && logits.chunk < logits.rows ? "chunk of logits" : "logits",
              "tokens x vocabulary x bytes of all copies"});
}

// The forward of a projection whose norms of rows DoRA computes: the layer's activations are there by then.
void add_row_norms(const LocalModel& model, Buffers& out, double tokens, double len) {
  const Request& r = *model.request;
  if (r.train.remat != model::Remat::none)
    add_working_set(out,
                    widest(model, len,
                           [&](const LayerMemory& l) {
                             return r.train.remat == model::Remat::block ? std::max(l.attention, l.mlp) : l.kept();
                           }),
                    tokens);
  add_gather_buffers(model, out);
  double held = 0;
  for (const LayerKind& k : model.kinds) held = std::max(held, row_norms(model, k).held);
  out.add(C::workspace, held, [&] {
    return Derivation{"W + B A of a projection", "identity, B A, its scaled copy and the sum", amount(held)};
  });
}

// Calls see(name(), buffers) for each instant of a training step with rows of `len` tokens at which memory may peak.
template <class See>
void training_instants(const LocalModel& model, double len, Detail detail, const See& see) {
  const Request& r = *model.request;
  const double tokens = rows_on_device(model, r.train.batch) * len;
  const bool full = r.method == model::TrainMethod::full, late = gradients_come_late(r);
  Buffers always = resident(model, full ? full_weights(r) : r.weights, detail);
  add_training_state(model, always);
  if (!late) add_gradients(model, always);
  Buffers left = always;
  add_kept(model, left, tokens, len);
  const Widest live = widest(model, len, [&](const LayerMemory& l) {
    if (r.train.remat == model::Remat::none) return std::max(l.attention_backward, l.mlp_backward);
    return r.train.remat == model::Remat::block ? l.live_block() : l.live_layer();
  });
  Buffers working(detail);
  add_working_set(working, live, tokens);
  add_gather_buffers(model, working);
  if (full && live.kind->gathered > 0) {
    const double each = bytes_of(r.weights);
    working.add(C::collectives, live.kind->gathered * each, [&] {
      return Derivation{"a layer's whole gradients", "elements x bytes", count(live.kind->gathered) * bytes_each(each)};
    });
  }
  Buffers loss = left;
  add_logits(model, loss, {tokens, r.train.loss_chunk, r.profile.logit_bytes});
  add_last_hidden_states(model, loss, tokens);
  add_gathered_head(model, loss);
  see([] { return std::string("logits of a training step"); }, std::move(loss));
  if (r.lora.dora) {
    Buffers norms = left;
    add_row_norms(model, norms, tokens, len);
    see([] { return std::string("norms of DoRA's rows"); }, std::move(norms));
  }
  left.add(working);
  see([&] { return "backward of " + one_of(*live.kind); }, std::move(left));
  if (!late) return;
  add_gradients(model, always);
  always.add(working);
  see([] { return std::string("end of the backward"); }, std::move(always));
}

// Calls see(name(), buffers) for each instant of a forward pass at which memory may peak.
template <class See>
void forward_instants(const LocalModel& model, Detail detail, const See& see) {
  const Request& r = *model.request;
  const ForwardWork& f = r.forward;
  const double rows = rows_on_device(model, f.batch), tokens = rows * f.len;
  Buffers always = resident(model, r.weights, detail);
  if (f.top_k > 0)
    add_matrix(model, always, C::logits, {tokens, static_cast<double>(f.top_k), 8},
               {"top-k values and indices", "tokens x k x 8 B"});
  const Widest wide = widest(model, f.len, [](const LayerMemory& l) { return l.forward; });
  Buffers layer = always;
  add_working_set(layer, wide, tokens);
  add_gather_buffers(model, layer);
  see([&] { return "forward of " + one_of(*wide.kind); }, std::move(layer));
  const LogitRows logits{tokens, f.chunk, r.profile.forward_logit_bytes};
  add_logits(model, always, logits);
  add_last_hidden_states(model, always, tokens);
  add_gathered_head(model, always);
  if (r.profile.forward == StackProfile::Forward::op_by_op && f.chunk == 0) {
    add_matrix(model, always, C::workspace, {static_cast<double>(model.config.dim), model.vocab, 2},
               {"transposed output matrix", "width x vocabulary x bytes: a product outside jit"});
    // n blocks leave about n/2 holes (Knuth's fifty-percent rule): two arrays of logits leave one, half as large.
    const auto array = static_cast<double>(std::llround(matrix_bytes(model, logits.size(model))));
    always.add(C::workspace, array * 0.25, [&] {
      return Derivation{"hole between the logits", "half of one of two arrays of logits (fifty-percent rule)",
                        amount(array) * number(0.25)};
    });
  }
  see([&] { return std::string(f.chunk > 0 ? "a chunk of logits" : "logits of the forward"); }, std::move(always));
}

// Calls see(name(), buffers) for each instant of a rollout at which memory may peak.
template <class See>
void rollout_instants(const LocalModel& model, Detail detail, const See& see) {
  const Request& r = *model.request;
  const RolloutWork& w = r.rollout;
  const double rows = rows_on_device(model, w.batch);
  const double len = w.cache_len > 0 ? w.cache_len : w.prompt + w.new_tokens;
  const double copies = r.profile.caches == StackProfile::Caches::copied ? 2 : 1;
  Buffers always = resident(model, r.weights, detail);
  const double cache = rows * len * kv_bytes_per_token(model, len);
  always.add(C::kv_cache, copies * cache, [&] {
    return Derivation{copies > 1 ? "KV cache, argument and result" : "KV cache", "copies x rows x tokens x bytes",
                      count(copies) * count(rows) * count(len) * amount(kv_bytes_per_token(model, len))};
  });
  const Widest wide = widest(model, len, [](const LayerMemory& l) { return l.forward; });
  Buffers prefill = always;
  add_working_set(prefill, wide, rows * w.prompt, "prompt tokens x bytes per token");
  add_gather_buffers(model, prefill);
  see([] { return std::string("prefill"); }, std::move(prefill));
  add_matrix(model, always, C::logits, {rows, model.vocab, 6},
             {"logits of one step", "rows x vocabulary x (bf16 and its f32 copy)"});
  add_working_set(always, wide, rows, "rows x bytes per token");
  add_gather_buffers(model, always);
  see([] { return std::string("decoding"); }, std::move(always));
}

// The KV cache that a server reserves beside what `serving` holds.
void add_kv_cache(const LocalModel& model, Buffers& serving) {
  const Request& r = *model.request;
  const ServeWork& s = r.serve;
  if (s.kv_cache)
    return serving.add(C::kv_cache, static_cast<double>(s.kv_cache->value), [] {
      return Derivation{"KV cache", "as the server sets it aside"};
    });
  const double capacity = r.target.chip.memory.value, share = s.memory_utilisation,
               others = static_cast<double>(serving.total().value);
  switch (r.profile.kv_reserve) {
    case StackProfile::KvReserve::share_of_device:
      return serving.add(C::kv_cache, capacity * share - others, [&] {
        return Derivation{"KV cache", "capacity x share that may be filled, less everything else",
                          amount(capacity) * number(share) - amount(others)};
      });
    case StackProfile::KvReserve::share_of_free:
      return serving.add(C::kv_cache, (capacity - others) * share, [&] {
        return Derivation{"KV cache", "(capacity - everything else) x share that may be filled",
                          (amount(capacity) - amount(others)) * number(share)};
      });
    case StackProfile::KvReserve::slots: {
      const double sequences = rows_on_device(model, s.max_num_seqs), each = kv_bytes_per_token(model, s.max_model_len);
      return serving.add(C::kv_cache, sequences * s.max_model_len * each, [&] {
        return Derivation{"KV cache", "sequences x longest request x bytes",
                          count(sequences) * count(s.max_model_len) * amount(each)};
      });
    }
  }
}

// A server, which holds the same all the time.
Buffers serving(const LocalModel& model, Detail detail) {
  const Request& r = *model.request;
  const ServeWork& s = r.serve;
  Buffers out = resident(model, r.weights, detail);
  const Widest wide = widest(model, s.max_model_len, [](const LayerMemory& l) { return l.forward; });
  add_working_set(out, wide, s.max_num_batched_tokens, "batched tokens x bytes per token");
  add_matrix(model, out, C::logits, {static_cast<double>(s.max_num_seqs), model.vocab, 6},
             {"logits of one step", "sequences x vocabulary x (bf16 and its f32 copy)"});
  add_kv_cache(model, out);
  return out;
}

// Calls each(detail, see), which calls see(name(), buffers) for each instant.
template <class Each>
DeviceMemory memory_of(const LocalModel& model, const Each& each) {
  std::vector<Instant> instants;
  each(Detail::buffers, [&](const auto& name, Buffers buffers) { instants.push_back({name(), std::move(buffers)}); });
  return finish(model, std::move(instants));
}
template <class Each>
Bytes peak_of(const LocalModel& model, const Each& each) {
  Bytes peak;
  each(Detail::totals, [&](const auto&, Buffers buffers) {
    add_fragmentation(model, buffers);
    peak = std::max(peak, buffers.total());
  });
  return peak;
}

}  // namespace

double rows_on_device(const LocalModel& model, std::int64_t batch) {
  return std::ceil(static_cast<double>(batch) / model.batch_ways);
}

double kv_bytes_per_token(const LocalModel& model, double len) {
  const Request& r = *model.request;
  double sum = 0;
  for (const LayerKind& k : model.kinds) {
    if (!k.shape.has_k) continue;
    const bool capped =
        r.sliding_window_kv && k.shape.attention == model::Attention::sliding && model.config.sliding_window > 0;
    const double kept = capped ? std::min<double>(len, model.config.sliding_window) : len;
    sum += k.count * 2 * k.kv() * bytes_of(r.kv) * kept / len;
  }
  return sum;
}

DeviceMemory train_memory(const LocalModel& model) {
  const Request& r = *model.request;
  const double longest = row_statistics(r.lengths, rows_on_device(model, r.train.batch)).longest;
  return memory_of(model, [&](Detail detail, const auto& see) { training_instants(model, longest, detail, see); });
}
DeviceMemory forward_memory(const LocalModel& model) {
  return memory_of(model, [&](Detail detail, const auto& see) { forward_instants(model, detail, see); });
}
DeviceMemory rollout_memory(const LocalModel& model) {
  return memory_of(model, [&](Detail detail, const auto& see) { rollout_instants(model, detail, see); });
}
DeviceMemory serve_memory(const LocalModel& model) {
  return memory_of(model, [&](Detail detail, const auto& see) {
    see([] { return std::string("serving"); }, serving(model, detail));
  });
}

Bytes train_peak(const LocalModel& model, double longest) {
  return peak_of(model, [&](Detail detail, const auto& see) { training_instants(model, longest, detail, see); });
}
Bytes forward_peak(const LocalModel& model) {
  return peak_of(model, [&](Detail detail, const auto& see) { forward_instants(model, detail, see); });
}
Bytes rollout_peak(const LocalModel& model) {
  return peak_of(model, [&](Detail detail, const auto& see) { rollout_instants(model, detail, see); });
}
Ledger serve_totals(const LocalModel& model) {
  Buffers buffers = serving(model, Detail::totals);
  add_fragmentation(model, buffers);
  return buffers.totals();
}

Bytes device_capacity(const Request& request) {
  return Bytes(std::llround(request.target.chip.memory.value));
}

}  // namespace mw::plan
