// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/memory.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/plan/memory/step_buffers.h"

namespace mw::plan {
namespace {

// Norms are always f32, in one buffer (with the gain of norms without weights); all matrices are in another.
// bf16 panels for inference take 12 bits per weight; the rare weights that do not fit are stored in addition.
enum class Use { training, inference };
Bytes weights(const StepPlan& plan, Use use) {
  const bool slim =
      use == Use::inference && plan.shape.weights == model::WeightType::bf16 && plan.shape.bf16 == Bf16Math::packed;
  std::int64_t norms = 0, head = 0, bytes = 0;
  for (const model::Layer& l : plan.config.layers) head = std::max(head, std::int64_t{l.head_dim});
  if (plan.config.v_norm) norms += aligned(head);
  for (const model::Tensor& t : plan.inventory.tensors()) {
    const std::int64_t cols = t.hf_shape.back();
    if (is_vector(t))
      norms += aligned(t.elements());
    else if (plan.shape.weights == model::WeightType::int8 && packable(t))  // bytes, and a bf16 scale for 64 of them
      bytes += sizes::aligned_bytes(t.elements()) +
               sizes::aligned_bytes(t.elements() / cols * sizes::scale_groups(cols) * 2);
    else if (slim && sizes::fits_bf16x12(t.matrix_rows(), cols))
      bytes += sizes::aligned_bytes(sizes::bf16x12_bytes(t.elements() / cols, cols));
    else
      bytes += sizes::aligned_bytes(t.elements() * (plan.shape.weights == model::WeightType::f32 ? 4 : 2));
  }
  return buffer_bytes(bytes, 1) + buffer_bytes(norms);
}

Bytes gradients(const StepPlan& plan) {
  if (plan.shape.method == model::TrainMethod::lora) return buffer_bytes(plan.adapter_floats);
  std::int64_t floats = 0;
  for (const model::Tensor& t : plan.inventory.tensors())
    if (!t.is_buffer) floats += aligned(t.elements());
  return buffer_bytes(floats);
}

// Two moments of every trainable value; full training of bf16 weights also keeps f32 master weights.
Bytes optimizer(const StepPlan& plan) {
  if (plan.shape.method == model::TrainMethod::lora) return buffer_bytes(plan.adapter_parameters) * 2;
  std::int64_t values = 0, masters = 0;
  for (const model::Tensor& t : plan.inventory.tensors()) {
    if (t.is_buffer) continue;
    values += t.elements();
    if (plan.shape.weights == model::WeightType::bf16) masters += aligned(t.elements());
  }
  return buffer_bytes(values) * 2 + buffer_bytes(masters);
}

// Weights, adapters and the working memory of a forward pass over shape.tokens.
Ledger forward_only(const StepPlan& plan) {
  Ledger ledger;
  ledger[MemoryCategory::weights] = weights(plan, Use::inference);
  ledger[MemoryCategory::adapters] = buffer_bytes(plan.adapter_floats);
  ledger[MemoryCategory::activations] = forward_activations(plan);
  return ledger;
}

TrainShape inference_shape(const InferenceModel& model, std::int64_t rows, std::int64_t len) {
  TrainShape shape{.weights = model.weights, .bf16 = model.bf16, .lora = model.lora, .threads = model.threads};
  if (rows < 1 || len < 1 || rows > kMostTokens / len)
    throw Error({.id = "PLAN-SIZE",
                 .message = "the batch size is out of range",
                 .found = std::to_string(rows) + " rows of " + std::to_string(len) + " tokens",
                 .expected = "1 to " + std::to_string(kMostTokens) + " tokens"});
  shape.tokens = std::min(rows, std::max<std::int64_t>(1, sizes::kPassTokens / len)) * len;
  shape.longest = static_cast<int>(len);
  return shape;
}

}  // namespace

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Generation& work) {
  TrainShape shape = inference_shape(model, work.rows, work.prompt);
  shape.tokens = std::max(shape.tokens, work.rows);  // decoding, a token of each row
  shape.generate_tokens = work.prompt + work.new_tokens;
  check(shape);
  StepPlan p(config, shape);
  p.lowest = config.layers.size();  // nothing has a backward
  Ledger ledger = forward_only(p);
  ledger[MemoryCategory::logits] = buffer_bytes(work.rows * config.vocab);
  ledger[MemoryCategory::workspace] = workspace(p);
  ledger[MemoryCategory::kv_cache] = kv_cache(p, work.rows);
  return {.at_peak = ledger, .category_peaks = ledger, .peak_instant = "decoding"};
}

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Serving& work) {
  TrainShape shape{.weights = model.weights, .bf16 = model.bf16, .threads = model.threads};
  shape.tokens = std::max(work.tokens, work.rows);
  shape.longest = work.context;
  check(shape);
  StepPlan p(config, shape);
  p.lowest = config.layers.size();  // nothing has a backward
  Ledger ledger = forward_only(p);
  ledger[MemoryCategory::logits] = buffer_bytes(std::int64_t{work.rows} * config.vocab);
  int head = 0;
  for (const model::Layer& l : config.layers) head = std::max(head, l.head_dim);
  ledger[MemoryCategory::workspace] =
      workspace(p) + buffer_bytes((sizes::kTileKeys + 2 * sizes::kQueries) * head * model.threads);
  for (const Serving::Group& g : work.groups) {
    std::int64_t floats = 0;
    for (const int layer : g.layers)
      floats += 2 * std::int64_t{g.blocks} * work.block_size * p.kv(static_cast<size_t>(layer));
    ledger[MemoryCategory::kv_cache] += buffer_bytes(floats);
  }
  std::int64_t most_rank = 0;
  for (const std::vector<mesh::AdapterShape>& adapter : work.adapters) {
    TrainShape with = shape;
    with.lora = adapter;
    const StepPlan of(config, with);
    ledger[MemoryCategory::adapters] += buffer_bytes(of.adapter_floats);
    most_rank = std::max(most_rank, of.most_rank);
  }
  ledger[MemoryCategory::activations] += buffer_bytes(3 * shape.tokens * most_rank);
  return {.at_peak = ledger, .category_peaks = ledger, .peak_instant = "step of a server"};
}

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Scoring& work) {
  const TrainShape shape = inference_shape(model, work.rows, work.len);
  check(shape);
  StepPlan p(config, shape);
  p.lowest = config.layers.size();  // nothing has a backward
  const std::int64_t cells = work.rows * work.len;
  Ledger ledger = forward_only(p);
  ledger[MemoryCategory::logits] =
      buffer_bytes((work.chunk > 0 ? std::min<std::int64_t>(work.chunk, cells) : cells) * config.vocab) +
      buffer_bytes(cells) + buffer_bytes(cells * std::min(work.top_k, config.vocab)) * 2;
  ledger[MemoryCategory::workspace] = workspace(p);
  return {.at_peak = ledger, .category_peaks = ledger, .peak_instant = "the last rows of logits"};
}

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape) {
  check(shape);
  const StepPlan p(config, shape);
  Ledger kept;
  kept[MemoryCategory::weights] = weights(p, Use::training);
  if (shape.method == model::TrainMethod::lora) kept[MemoryCategory::adapters] = buffer_bytes(p.adapter_floats);
  kept[MemoryCategory::gradients] = gradients(p);
  kept[MemoryCategory::optimizer] = optimizer(p);
  return run_memory(p, kept,
                    streams_loss(p) ? buffer_bytes(config.vocab) : Bytes(0));  // its row is f32, beside the loss's
}

}  // namespace mw::plan
