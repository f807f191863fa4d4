// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/memory.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/layout/weights_layout.h"
#include "core/plan/memory/train_phases.h"

namespace mw::plan {
namespace {

void check_rows(std::int64_t rows, std::int64_t len) {
  if (rows < 1 || len < 1 || rows > kMostTokens / len)
    throw Error({.id = "PLAN-SIZE",
                 .message = "the batch size is out of range",
                 .found = std::to_string(rows) + " rows of " + std::to_string(len) + " tokens",
                 .expected = "1 to " + std::to_string(kMostTokens) + " tokens"});
}

engine::ModelShape model_shape(const model::Config& config, const InferenceModel& model) {
  engine::ModelShape shape(config, {model.weights, engine::NetworkUse::inference, model.bf16});
  shape.set_adapters(lora_shapes(shape.inventory, model.lora));
  return shape;
}

MemoryPlan predict_phase(const engine::ModelShape& model, const engine::Phase& phase, const char* instant) {
  BufferTimeline buffers(model, engine::model_allocations(model));
  buffers.run(phase, instant);
  return buffers.plan();
}

}  // namespace

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Generation& work) {
  check_rows(work.rows, work.prompt);
  const engine::ModelShape shape = model_shape(config, model);
  return predict_phase(
      shape, engine::generation_phase(shape, {work.rows, work.prompt, work.prompt + work.new_tokens}, model.threads),
      "decoding");
}

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Serving& work) {
  const engine::ModelShape shape = model_shape(config, model);
  engine::ServingWork served{.tokens = work.tokens,
                             .rows = work.rows,
                             .context = work.context,
                             .block_size = work.block_size,
                             .groups = work.groups,
                             .adapters = {}};
  for (const std::vector<mesh::AdapterShape>& adapter : work.adapters)
    served.adapters.push_back(lora_shapes(shape.inventory, adapter));
  return predict_phase(shape, engine::serving_phase(shape, served, model.threads), "step of a server");
}

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Scoring& work) {
  check_rows(work.rows, work.len);
  const engine::ModelShape shape = model_shape(config, model);
  return predict_phase(shape,
                       engine::scoring_phase(shape, {work.rows, work.len, work.chunk, work.top_k}, model.threads),
                       "the last rows of logits");
}

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape) {
  check(shape);
  const engine::ModelShape model = model_shape(config, shape);
  std::vector<engine::Allocation> lasting = engine::model_allocations(model);
  for (const engine::Allocation& allocation : engine::training_allocations(model)) lasting.push_back(allocation);
  return predict_run(model, shape, lasting);
}

}  // namespace mw::plan
