// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/device_memory.h"

#include <algorithm>
#include <cmath>

#include "core/mesh/layout/tiles.h"
#include "core/plan/memory/activations.h"
#include "core/plan/memory/remat.h"
#include "core/plan/request/expression.h"
#include "core/plan/request/lengths.h"

namespace mw::plan {
namespace {

using C = MemoryCategory;
using Buffers = std::vector<Buffer>;

struct Instant {
  std::string name;
  Buffers buffers;
};

// `words` names the factors of `needed`; the rest of `bytes` is padding of tiles.
Buffer buffer(std::string name, C category, const std::string& words, const Expression& needed, double bytes) {
  const double padding = std::round(bytes - needed.value);
  const Expression shown = needed + labelled(amount(padding), "padding of tiles");
  return {std::move(name), category, Bytes(std::llround(bytes)), Bytes(std::llround(needed.value)),
          words + " = " + shown.text};
}
Buffer buffer(std::string name, C category, const std::string& words, const Expression& needed) {
  return buffer(std::move(name), category, words, needed, needed.value);
}
// A buffer whose size is given.
Buffer given(std::string name, C category, double bytes, std::string why) {
  const Bytes held(std::llround(bytes));
  return {std::move(name), category, held, held, std::move(why)};
}

Bytes total(const Buffers& buffers) {
  Bytes sum;
  for (const Buffer& b : buffers) sum += b.bytes;
  return sum;
}

struct MatrixSize {
  double rows, columns;
  double width;  // bytes per element, of all copies
};
Buffer matrix(const LocalModel& model, std::string name, C category, const MatrixSize& size, const std::string& words) {
  const auto& [rows, columns, width] = size;
  const int element = width >= 4 ? 4 : 2;
  const double padded =
      static_cast<double>(mesh::padded_bytes({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)},
                                             element, mesh::tile_of(model.request->target.chip, element)));
  return buffer(std::move(name), category, words, count(rows) * count(columns) * bytes_each(width),
                padded * width / element);
}

void add(Buffers& to, Buffer b) {
  if (b.bytes.value > 0) to.push_back(std::move(b));
}

// Weights, adapters and the runtime's memory, which are held all the time.
Buffers resident(const LocalModel& model, DType type) {
  const Request& r = *model.request;
  Buffers out;
  const TensorBytes w = model.weights(type);
  const std::string words = "elements on this device x bytes";
  const Expression stored = count(w.elements) * bytes_each(bytes_of(type));
  const Expression wide = labelled(amount(w.unpadded - stored.value), "more for what stays in bf16");
  add(out, buffer("base weights", C::weights, words, stored + wide, w.bytes));
  if (r.other_models > 0)
    add(out,
        buffer("other copies of the base", C::weights, "copies x weights", count(r.other_models) * amount(w.bytes)));
  if (r.method == model::TrainMethod::lora) {
    const TensorBytes a = model.adapters(r.profile.adapters);
    add(out,
        buffer("adapters", C::adapters, words, count(a.elements) * bytes_each(bytes_of(r.profile.adapters)), a.bytes));
  }
  add(out, given("runtime", C::runtime, r.efficiencies.runtime_bytes.value, r.efficiencies.runtime_bytes.source));
  return out;
}

TensorBytes trainable(const LocalModel& model, DType type) {
  return model.request->method == model::TrainMethod::full ? model.weights(type) : model.adapters(type);
}

void add_training_state(const LocalModel& model, Buffers& out) {
  const Request& r = *model.request;
  const StackProfile& h = r.profile;
  const double split = h.optimizer == StackProfile::OptimizerState::over_batch ? model.batch_ways : 1;
  const TensorBytes moments = trainable(model, h.moments);
  add(out,
      buffer("Adam's moments", C::optimizer, "2 x trainables x bytes",
             count(2) * count(moments.elements / split) * bytes_each(bytes_of(h.moments)), 2 * moments.bytes / split));
  if (r.method == model::TrainMethod::full && h.master_weights) {
    const TensorBytes masters = model.weights(DType::f32);
    add(out, buffer("f32 masters", C::optimizer, "weights x 4 B", count(masters.elements / split) * bytes_each(4),
                    masters.bytes / split));
  }
}

// A compiled step holds the gradients of a micro-batch in addition to their sum.
Buffer gradients_of(const LocalModel& model) {
  const StackProfile& h = model.request->profile;
  const TensorBytes gradients = trainable(model, h.gradients);
  const double copies = h.static_shapes && model.request->train.accumulation > 1 ? 2 : 1;
  const Expression once = count(gradients.elements) * bytes_each(bytes_of(h.gradients));
  return buffer("gradients", C::gradients,
                copies > 1 ? "sum and this micro-batch's: 2 x trainables x bytes" : "trainables x bytes",
                copies > 1 ? count(copies) * once : once, copies * gradients.bytes);
}

// With accumulation the sum over micro-batches is allocated from the start.
bool gradients_come_late(const Request& request) {
  return request.profile.gradient_buffers == StackProfile::GradientBuffers::late && request.train.accumulation <= 1;
}

// Activations that the forward keeps for the backward.
void add_kept(const LocalModel& model, Buffers& out, double tokens, double len) {
  const Request& r = *model.request;
  double kept = 0, saved = 0;
  for (const LayerKind& k : model.kinds) {
    kept += k.count * layer_memory(model, k, len).kept() * tokens;
    saved += k.count * saved_bytes(r, k) * tokens;
  }
  if (r.train.remat == model::Remat::none) {
    add(out, buffer("activations of all layers", C::activations, "tokens x bytes kept per token, all layers",
                    count(tokens) * amount(kept / tokens), kept));
    return;
  }
  const double each = r.train.remat == model::Remat::block ? 2 : 1;
  if (r.train.offload == Offload::none)
    add(out, matrix(model, each > 1 ? "saved inputs of all blocks" : "saved inputs of all layers", C::activations,
                    {each * model.layers() * tokens, model.width, static_cast<double>(activation_bytes(r))},
                    "layers x tokens x width x bytes"));
  add(out, buffer("saved outputs of all layers", C::activations, "tokens x bytes saved per token, all layers",
                  count(tokens) * amount(saved / tokens), saved));
}

// Gathered weights of the current layer and the prefetched ones.
Buffer gather_buffers(const LocalModel& model) {
  double largest = 0;
  for (const LayerKind& k : model.kinds) largest = std::max(largest, k.gathered);
  const double layers = 1 + model.request->profile.prefetched_layers;
  return buffer("gathered layers", C::collectives, "(1 + prefetched) x largest layer x bytes",
                count(layers) * count(largest) * bytes_each(bytes_of(model.request->weights)));
}
Buffer gathered_head(const LocalModel& model) {
  return buffer("gathered embedding", C::collectives, "elements x bytes",
                count(model.head_gathered) * bytes_each(bytes_of(model.request->weights)));
}

// Fragmentation of the allocator if sizes vary between steps.
void add_fragmentation(const LocalModel& model, Buffers& out) {
  const Request& r = *model.request;
  const bool varies = r.profile.elementwise == StackProfile::Elementwise::eager && r.lengths.rows == RowLayout::ragged;
  if (!varies) return;
  double dynamic = 0;
  for (const Buffer& b : out)
    if (b.category == C::activations || b.category == C::logits) dynamic += static_cast<double>(b.bytes.value);
  add(out, buffer("allocator's holes", C::workspace, "activations and logits x share of holes",
                  amount(dynamic) * number(r.efficiencies.fragmentation.value)));
}

DeviceMemory finish(const LocalModel& model, std::vector<Instant> instants) {
  const Request& r = *model.request;
  DeviceMemory out;
  out.capacity = Bytes(std::llround(r.target.chip.memory.value));
  const Instant* peak = &instants.front();
  for (Instant& i : instants) {
    add_fragmentation(model, i.buffers);
    Ledger ledger;
    for (const Buffer& b : i.buffers) ledger[b.category] += b.bytes;
    for (size_t c = 0; c < kMemoryCategories; ++c)
      out.category_peaks.bytes[c] = std::max(out.category_peaks.bytes[c], ledger.bytes[c]);
    if (total(i.buffers) > total(peak->buffers)) peak = &i;
  }
  out.peak_instant = peak->name;
  out.buffers = peak->buffers;
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

Buffers with(Buffers buffers, std::initializer_list<Buffer> more) {
  for (const Buffer& b : more) add(buffers, b);
  return buffers;
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

Buffer working_set(const Widest& wide, double tokens, const char* words = "tokens x bytes per token") {
  return buffer("working set of " + one_of(*wide.kind), C::activations, words, count(tokens) * amount(wide.bytes),
                wide.bytes * tokens);
}

Buffer last_hidden_states(const LocalModel& model, double tokens) {
  return matrix(model, "last hidden states", C::activations,
                {tokens, static_cast<double>(model.config.dim), static_cast<double>(activation_bytes(*model.request))},
                "tokens x width x bytes");
}

Buffer logits_buffer(const LocalModel& model, double rows, int chunk, double width, const char* words) {
  return matrix(model, chunk > 0 && chunk < rows ? "chunk of logits" : "logits", C::logits,
                {chunk > 0 ? std::min<double>(rows, chunk) : rows, model.vocab, width}, words);
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
  const double rows = rows_on_device(model, r.train.batch), len = row_statistics(r.lengths, rows).longest,
               tokens = rows * len;
  const bool full = r.method == model::TrainMethod::full;
  Buffers always = resident(model, full ? full_weights(r) : r.weights);
  add_training_state(model, always);
  const Buffer gradients = gradients_of(model);
  if (!gradients_come_late(r)) add(always, gradients);
  Buffers left = always;
  add_kept(model, left, tokens, len);
  const Widest live = widest(model, len, [&](const LayerMemory& l) {
    if (r.train.remat == model::Remat::none) return std::max(l.attention_backward, l.mlp_backward);
    return r.train.remat == model::Remat::block ? l.live_block() : l.live_layer();
  });
  Buffers working{working_set(live, tokens)};
  add(working, gather_buffers(model));
  if (full && live.kind->gathered > 0)
    add(working, buffer("a layer's whole gradients", C::collectives, "elements x bytes",
                        count(live.kind->gathered) * bytes_each(bytes_of(r.weights))));
  Instant backward{"backward of " + one_of(*live.kind), left};
  backward.buffers.insert(backward.buffers.end(), working.begin(), working.end());
  Instant loss{"logits of a training step",
               with(left, {logits_buffer(model, tokens, r.train.loss_chunk, r.profile.logit_bytes,
                                         "tokens x vocabulary x bytes of all copies"),
                           last_hidden_states(model, tokens), gathered_head(model)})};
  if (!gradients_come_late(r)) return finish(model, {std::move(loss), std::move(backward)});
  Instant end{"end of the backward", with(always, {gradients})};
  end.buffers.insert(end.buffers.end(), working.begin(), working.end());
  return finish(model, {std::move(loss), std::move(backward), std::move(end)});
}

DeviceMemory forward_memory(const LocalModel& model) {
  const Request& r = *model.request;
  const ForwardWork& f = r.forward;
  const double rows = rows_on_device(model, f.batch), tokens = rows * f.len;
  Buffers always = resident(model, r.weights);
  if (f.top_k > 0)
    add(always, matrix(model, "top-k values and indices", C::logits, {tokens, static_cast<double>(f.top_k), 8},
                       "tokens x k x 8 B"));
  const Widest wide = widest(model, f.len, [](const LayerMemory& l) { return l.forward; });
  Instant layer{"forward of " + one_of(*wide.kind), with(always, {working_set(wide, tokens), gather_buffers(model)})};
  const Buffer logits =
      logits_buffer(model, tokens, f.chunk, r.profile.forward_logit_bytes, "tokens x vocabulary x bytes of all copies");
  Instant last{f.chunk > 0 ? "a chunk of logits" : "logits of the forward",
               with(always, {logits, last_hidden_states(model, tokens), gathered_head(model)})};
  if (r.profile.forward == StackProfile::Forward::op_by_op && f.chunk == 0) {
    add(last.buffers,
        matrix(model, "transposed output matrix", C::workspace, {static_cast<double>(model.config.dim), model.vocab, 2},
               "width x vocabulary x bytes: a product outside jit"));
    // n blocks leave about n/2 holes (Knuth's fifty-percent rule): two arrays of logits leave one, half as large.
    add(last.buffers,
        buffer("hole between the logits", C::workspace, "half of one of two arrays of logits (fifty-percent rule)",
               amount(static_cast<double>(logits.bytes.value)) * number(0.25)));
  }
  return finish(model, {std::move(layer), std::move(last)});
}

DeviceMemory rollout_memory(const LocalModel& model) {
  const Request& r = *model.request;
  const RolloutWork& w = r.rollout;
  const double rows = rows_on_device(model, w.batch);
  const double len = w.cache_len > 0 ? w.cache_len : w.prompt + w.new_tokens;
  const double copies = r.profile.caches == StackProfile::Caches::copied ? 2 : 1;
  Buffers always = resident(model, r.weights);
  const double cache = rows * len * kv_bytes_per_token(model, len);
  add(always,
      buffer(copies > 1 ? "KV cache, argument and result" : "KV cache", C::kv_cache, "copies x rows x tokens x bytes",
             count(copies) * count(rows) * count(len) * amount(kv_bytes_per_token(model, len)), copies * cache));
  const double prompt = rows * w.prompt;
  const Widest wide = widest(model, len, [](const LayerMemory& l) { return l.forward; });
  Instant prefill{"prefill",
                  with(always, {working_set(wide, prompt, "prompt tokens x bytes per token"), gather_buffers(model)})};
  Instant decode{"decoding", with(always, {matrix(model, "logits of one step", C::logits, {rows, model.vocab, 6},
                                                  "rows x vocabulary x (bf16 and its f32 copy)"),
                                           working_set(wide, rows, "rows x bytes per token"), gather_buffers(model)})};
  return finish(model, {std::move(prefill), std::move(decode)});
}

namespace {

// The KV cache that a server reserves beside `others` bytes.
Buffer kv_cache(const LocalModel& model, double others) {
  const Request& r = *model.request;
  const ServeWork& s = r.serve;
  if (s.kv_cache)
    return given("KV cache", C::kv_cache, static_cast<double>(s.kv_cache->value), "as the server sets it aside");
  const Expression capacity = amount(r.target.chip.memory.value), share = number(s.memory_utilisation);
  switch (r.profile.kv_reserve) {
    case StackProfile::KvReserve::share_of_device:
      return buffer("KV cache", C::kv_cache, "capacity x share that may be filled, less everything else",
                    capacity * share - amount(others));
    case StackProfile::KvReserve::share_of_free:
      return buffer("KV cache", C::kv_cache, "(capacity - everything else) x share that may be filled",
                    (capacity - amount(others)) * share);
    case StackProfile::KvReserve::slots:
      break;
  }
  return buffer("KV cache", C::kv_cache, "sequences x longest request x bytes",
                count(rows_on_device(model, s.max_num_seqs)) * count(s.max_model_len) *
                    amount(kv_bytes_per_token(model, s.max_model_len)));
}

}  // namespace

DeviceMemory serve_memory(const LocalModel& model) {
  const Request& r = *model.request;
  const ServeWork& s = r.serve;
  Buffers always = resident(model, r.weights);
  const double tokens = s.max_num_batched_tokens;
  const Widest wide = widest(model, s.max_model_len, [](const LayerMemory& l) { return l.forward; });
  add(always, working_set(wide, tokens, "batched tokens x bytes per token"));
  add(always, matrix(model, "logits of one step", C::logits, {static_cast<double>(s.max_num_seqs), model.vocab, 6},
                     "sequences x vocabulary x (bf16 and its f32 copy)"));
  const Buffer cache = kv_cache(model, static_cast<double>(total(always).value));
  Instant serving{"serving", std::move(always)};
  add(serving.buffers, cache);
  return finish(model, {std::move(serving)});
}

}  // namespace mw::plan
