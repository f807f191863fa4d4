// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/step_buffers.h"

#include "core/engine/transformer/attention.h"

namespace mw::engine {
namespace {

// Frees the old buffer first.
template <class T>
void replace(DeviceBuffer<T>& buffer, Arena& arena, const Allocation& by) {
  buffer = {};
  buffer = DeviceBuffer<T>(arena, by);
}

}  // namespace

void StepBuffers::prepare(const ActivationShape& need) {
  if (step.shape.tokens > 0 && step.shape.holds(need)) return;
  step = {};
  const StepLayout layout = lay_out_step(weights, need);
  StepActivations next;
  next.shape = need;
  std::vector<std::byte*> memory;
  for (const Allocation& allocation : layout.allocations)
    memory.push_back(next.buffers.emplace_back(device.arena, allocation).data());
  for (const LayerActivationsAt<FieldOf>& fields : layout.layers) next.layers.push_back(pointers(fields, memory));
  static_cast<ScratchAt<PointerTo>&>(next.scratch) = pointers(layout.scratch, memory);
  if (layout.ple) {
    std::byte* const inputs = memory[static_cast<size_t>(layout.ple.allocation)];
    next.ple = reinterpret_cast<float*>(field_at(inputs, layout.ple));
    next.ple_inv = reinterpret_cast<float*>(field_at(inputs, layout.ple_inv));
  }
  step = std::move(next);
}

void StepBuffers::release() {
  step = {};
  logit_chunk = {}, f16_logits = {}, logit_maxima = {}, attention_workspace = {};
  attention_block_keys = 0;
  rope_tables.clear();
  rope_positions = 0;
}

void StepBuffers::prepare_rope(int last_position) {
  if (last_position < rope_positions) return;
  rope_tables.clear();
  rope_positions = 0;
  const std::int64_t positions = engine::rope_positions(last_position + 1);
  const std::vector<Allocation> tables = engine::rope_tables(weights, positions);
  for (size_t i = 0; i < tables.size(); ++i) {
    rope_tables.emplace_back(device.arena, tables[i]);
    fill_rope_table(weights.rope_specs[i], positions, rope_tables.back().data());
  }
  rope_positions = positions;
}

void StepBuffers::prepare_scores(std::int64_t keys) {
  if (keys <= attention_block_keys) return;
  attention_block_keys = 0;
  replace(attention_workspace, device.arena, score_allocation(weights, keys, device.pool.threads()));
  attention_block_keys = score_block_keys(keys);
}

float* StepBuffers::logit_rows(std::int64_t rows) {
  if (const Allocation need = logit_allocation(weights, rows); !serves(logit_chunk.allocation(), need))
    replace(logit_chunk, device.arena, need);
  return logit_chunk.data();
}

std::uint16_t* StepBuffers::f16_logit_rows(std::int64_t rows) {
  const auto [logits, maxima] = streamed_logits(weights, rows);
  if (!serves(f16_logits.allocation(), logits)) {
    logit_maxima = {};
    replace(f16_logits, device.arena, logits);
    replace(logit_maxima, device.arena, maxima);
  }
  return f16_logits.data();
}

}  // namespace mw::engine
