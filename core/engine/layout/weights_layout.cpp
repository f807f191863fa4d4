// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/weights_layout.h"

#include <algorithm>

namespace mw::engine {

WeightsLayout lay_out_weights(const ModelShape& model, const std::function<bool(size_t)>& is_stored) {
  const auto tensors = model.inventory.tensors();
  WeightsLayout out;
  Carver norms(0), matrices(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    Field& field = out.fields.emplace_back();
    if (!is_stored(i)) continue;
    const model::Tensor& t = tensors[i];
    const std::int64_t cols = t.hf_shape.back();
    field = t.hf_shape.size() == 1
                ? norms.take_floats(cols)
                : matrices.take(matrix_bytes(model.matrix_format(t.matrix_rows(), cols), t.elements() / cols, cols));
  }
  int head = 0;
  for (const model::Layer& l : model.config.layers) head = std::max(head, l.head_dim);
  if (model.config.v_norm) out.unit_norm = norms.take_floats(head);
  out.norms = {MemoryCategory::weights, "norms", Bytes(norms.used())};
  out.matrices = {MemoryCategory::weights, "weights", Bytes(matrices.used())};
  return out;
}

BufferLayout lay_out_adapters(const std::vector<LoraShape>& adapters) {
  BufferLayout out;
  Carver carver(0);
  for (const LoraShape& a : adapters) {
    out.fields.push_back(carver.take_floats(a.rank * a.in));
    out.fields.push_back(carver.take_floats(a.out * a.rank));
  }
  out.allocation = {MemoryCategory::adapters, "LoRA adapters", Bytes(carver.used())};
  return out;
}

BufferLayout lay_out_gradients(const ModelShape& model) {
  BufferLayout out;
  if (model.full) {
    Carver carver(0);
    for (const model::Tensor& t : model.inventory.tensors())
      out.fields.push_back(t.is_buffer ? Field() : carver.take_floats(t.elements()));
    out.allocation.bytes = Bytes(carver.used());
  } else {
    out = lay_out_adapters(model.lora_shapes);
  }
  out.allocation = gradient_allocation(model, out.allocation.bytes);
  return out;
}

BufferLayout lay_out_masters(const ModelShape& model) {
  BufferLayout out = lay_out_gradients(model);
  if (!model.full || model.type != model::WeightType::bf16) out = {};
  out.allocation = master_allocation(out.allocation.bytes);
  return out;
}

Allocation gradient_allocation(const ModelShape& model, Bytes bytes) {
  return {MemoryCategory::gradients, model.full ? "gradients" : "adapter gradients", bytes};
}

Allocation master_allocation(Bytes bytes) {
  return {MemoryCategory::optimizer, "f32 master weights", bytes};
}

std::array<Allocation, 2> moment_allocations(std::int64_t values) {
  return {float_allocation(MemoryCategory::optimizer, "AdamW first moments", values),
          float_allocation(MemoryCategory::optimizer, "AdamW second moments", values)};
}

Allocation widened_weight(std::int64_t elements) {
  return float_allocation(MemoryCategory::workspace, "widened weight", elements);
}

std::vector<Allocation> model_allocations(const ModelShape& model) {
  const WeightsLayout weights = lay_out_weights(model, [](size_t) { return true; });
  return {weights.norms, weights.matrices, lay_out_adapters(model.lora_shapes).allocation};
}

std::vector<Allocation> training_allocations(const ModelShape& model) {
  std::int64_t values = 0;
  if (model.full) {
    for (const model::Tensor& t : model.inventory.tensors()) values += t.is_buffer ? 0 : t.elements();
  } else {
    for (const LoraShape& a : model.lora_shapes) values += a.rank * (a.in + a.out);
  }
  const auto [first, second] = moment_allocations(values);
  return {lay_out_gradients(model).allocation, lay_out_masters(model).allocation, first, second};
}

}  // namespace mw::engine
