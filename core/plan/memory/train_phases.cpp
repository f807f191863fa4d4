// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/train_phases.h"

#include <algorithm>

#include "core/base/error.h"

namespace mw::plan {

void check(const TrainShape& shape) {
  const TrainShape::Forward& e = shape.evaluation;
  if (shape.tokens < 0 || shape.tokens > kMostTokens || shape.loss_tokens < 0 || shape.longest < 0 ||
      shape.threads < 1 || shape.generate_tokens < 0 || shape.prompt_tokens < 0 || e.tokens < 0 ||
      e.tokens > kMostTokens || e.loss_tokens < 0 || e.longest < 0)
    throw Error({.id = "PLAN-SIZE",
                 .message = "the size of the micro-batch is out of range",
                 .found = std::to_string(shape.tokens) + " tokens, " + std::to_string(shape.threads) + " threads",
                 .expected = "0 to " + std::to_string(kMostTokens) + " tokens, at least 1 thread"});
}

std::vector<engine::LoraShape> lora_shapes(const model::TensorInventory& inventory,
                                           std::span<const mesh::AdapterShape> adapters) {
  std::vector<engine::LoraShape> shapes;
  for (const mesh::AdapterShape& adapter : adapters)
    for (const model::LoraTarget& t : inventory.lora_targets())
      if (t.role == adapter.role && t.layer == adapter.layer)
        shapes.push_back({t.layer, engine::projection_of(t.role), t.in, t.out, adapter.rank});
  return shapes;
}

engine::ModelShape model_shape(const model::Config& whole, const TrainShape& shape, const mesh::LocalConfig* local) {
  engine::ModelShape model(whole, {shape.weights, engine::NetworkUse::training, shape.bf16}, local);
  model.full = shape.method == model::TrainMethod::full;
  if (!model.full) model.set_adapters(lora_shapes(model.inventory, shape.lora));
  return model;
}

MemoryPlan predict_run(const engine::ModelShape& model, const TrainShape& shape,
                       std::span<const engine::Allocation> lasting) {
  BufferTimeline buffers(model, lasting);
  const TrainShape::Forward& held_out = shape.evaluation;
  const engine::StepShape step{.tokens = shape.tokens,
                               .lowest = model.lowest_trained_layer(),
                               .backward = true,
                               .full = model.full,
                               .dropout = shape.dropout,
                               .remat = shape.remat};
  const auto train = [&] {
    if (shape.loss_tokens > 0)
      buffers.run(engine::step_phase(model, {step, shape.loss_tokens, shape.loss_chunk, shape.longest}, shape.threads),
                  "logits of a training step");
  };
  const auto evaluate = [&] {
    if (held_out.loss_tokens > 0)
      buffers.run(engine::step_phase(model,
                                     {engine::forward_shape(model, held_out.tokens), held_out.loss_tokens,
                                      shape.loss_chunk, held_out.longest},
                                     shape.threads),
                  "evaluation of held-out rows");
  };
  const auto sample = [&] {  // a prompt at a time
    if (shape.generate_tokens > 0)
      buffers.run(
          engine::generation_phase(
              model, {.prompt = std::max(1, shape.prompt_tokens), .with_answer = shape.generate_tokens}, shape.threads),
          "start of sampling");
  };
  train();
  evaluate();
  sample();
  buffers.forget_peaks();  // from here on with all that earlier phases leave
  train();
  sample();
  train();
  evaluate();
  sample();
  return buffers.plan();
}

}  // namespace mw::plan
