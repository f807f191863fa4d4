// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/weights_layout.h"

#include <algorithm>
#include <map>

namespace mw::engine {
namespace {

std::int64_t weight_bytes(const ModelShape& model) {
  return model.type == model::WeightType::f32 ? 4 : 2;
}

// floats: of a tensor; negative: none.
template <class Floats>
BufferLayout lay_out_floats(MemoryCategory category, std::string_view label, std::span<const ShardShape> tensors,
                            const Floats& floats) {
  BufferLayout out;
  Carver carver(0);
  for (const ShardShape& tensor : tensors) {
    const std::int64_t count = floats(tensor);
    out.fields.push_back(count >= 0 ? carver.take_floats(count) : BufferField());
  }
  out.allocation = {category, label, Bytes(carver.used())};
  return out;
}

}  // namespace

int part_of(const mesh::PlacedTensor& tensor) {
  return tensor.layer >= 0 ? tensor.layer : tensor.role == model::Role::final_norm ? kHeadPart : kEmbeddingsPart;
}

std::vector<ShardShape> whole_tensors(const ModelShape& model) {
  std::vector<ShardShape> tensors;
  for (const model::Tensor& t : model.inventory.tensors())
    tensors.push_back({.vector = t.hf_shape.size() == 1,
                       .trained = model.full && !t.is_buffer,
                       .stored = t.elements(),
                       .used = t.elements()});
  for (const ShardShape& adapter : adapter_tensors(model.lora_shapes)) tensors.push_back(adapter);
  return tensors;
}

std::vector<ShardShape> adapter_tensors(std::span<const LoraShape> adapters) {
  std::vector<ShardShape> tensors;
  const auto add = [&](std::int64_t size) {
    tensors.push_back({.adapter = true, .trained = true, .stored = size, .used = size});
  };
  for (const LoraShape& lora : adapters) {
    add(lora.rank * lora.in);
    add(lora.rank * lora.out);
    if (lora.dora) add(lora.out);
  }
  for (const ShardShape& norm : row_norms(adapters)) tensors.push_back(norm);
  return tensors;
}

std::vector<ShardShape> row_norms(std::span<const LoraShape> adapters) {
  std::vector<ShardShape> tensors;
  for (const LoraShape& lora : adapters)
    if (lora.dora) tensors.push_back({.part = lora.layer, .adapter = true, .stored = lora.out, .used = lora.out});
  return tensors;
}

WeightsLayout lay_out_weights(const ModelShape& model, const std::function<bool(size_t)>& is_direct) {
  const auto tensors = model.inventory.tensors();
  WeightsLayout out;
  Carver norms(0), matrices(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    BufferField& field = out.fields.emplace_back();
    if (!is_direct(i)) continue;
    const model::Tensor& t = tensors[i];
    const std::int64_t cols = t.hf_shape.back();
    field = t.hf_shape.size() == 1
                ? norms.take_floats(cols)
                : matrices.take(matrix_bytes(model.matrix_format(t.matrix_rows(), cols), t.elements() / cols, cols));
  }
  if (model.config.v_norm) out.unit_norm = norms.take_floats(model.widest_head());
  out.norms = {MemoryCategory::weights, "norms", Bytes(norms.used())};
  out.matrices = {MemoryCategory::weights, "weights", Bytes(matrices.used())};
  return out;
}

BufferLayout lay_out_shards(const ModelShape& model, std::span<const ShardShape> tensors) {
  BufferLayout out;
  Carver carver(0);
  for (const ShardShape& t : tensors)
    out.fields.push_back(t.direct || t.adapter || t.stored == 0 ? BufferField()
                                                                : carver.take(t.stored * weight_bytes(model)));
  out.allocation = {MemoryCategory::weights, "weight shards", Bytes(carver.used())};
  return out;
}

BufferLayout lay_out_adapters(std::span<const ShardShape> tensors) {
  return lay_out_floats(MemoryCategory::adapters, "LoRA adapters", tensors,
                        [](const ShardShape& t) { return t.adapter ? t.stored : -1; });
}

BufferLayout lay_out_gradients(const ModelShape& model, std::span<const ShardShape> tensors) {
  return lay_out_floats(MemoryCategory::gradients, model.full ? "gradients" : "adapter gradients", tensors,
                        [](const ShardShape& t) { return !t.trained ? -1
                                                         : t.sums   ? t.stored
                                                                    : t.used; });
}

BufferLayout lay_out_masters(const ModelShape& model, std::span<const ShardShape> tensors) {
  const bool kept = model.full && model.type == model::WeightType::bf16;
  return lay_out_floats(MemoryCategory::optimizer, "f32 master weights", tensors,
                        [&](const ShardShape& t) { return kept && t.trained ? t.stored : -1; });
}

BufferLayout lay_out_partial_gradients(std::span<const ShardShape> tensors) {
  BufferLayout out;
  out.fields.resize(tensors.size());
  std::map<int, std::vector<size_t>> parts;  // the model-level ones first
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].trained && tensors[i].sums) parts[tensors[i].part].push_back(i);
  Carver carver(0);
  std::int64_t kept = 0, most = 0;
  for (const auto& [part, list] : parts) {
    if (part >= 0) carver.rewind(kept);
    for (const size_t i : list) out.fields[i] = carver.take_floats(tensors[i].used);
    if (part < 0) kept = carver.used();
    most = std::max(most, carver.used());
  }
  out.allocation = {MemoryCategory::collectives, "gradients to sum", Bytes(most)};
  return out;
}

std::array<Allocation, 2> moment_allocations(std::int64_t trained_values) {
  return {float_allocation(MemoryCategory::optimizer, "AdamW first moments", trained_values),
          float_allocation(MemoryCategory::optimizer, "AdamW second moments", trained_values)};
}

std::int64_t gathered_bytes(const ModelShape& model, const ShardShape& tensor) {
  return aligned_bytes(tensor.used * (tensor.vector || tensor.adapter ? 4 : weight_bytes(model)));
}

Allocation gathered_weights(const ModelShape& model, std::span<const ShardShape> tensors) {
  std::map<int, std::int64_t> parts;
  std::int64_t most = 0;
  for (const ShardShape& t : tensors) {
    if (t.direct) continue;
    most = std::max(most, parts[t.part] += gathered_bytes(model, t));
    if (t.is_embedding) most = std::max(most, parts[kHeadPart] += gathered_bytes(model, t));
  }
  return {MemoryCategory::collectives, "gathered weights", Bytes(most)};
}

Allocation widened_weight(std::int64_t elements) {
  return float_allocation(MemoryCategory::workspace, "widened weight", elements);
}

std::vector<Allocation> model_allocations(const ModelShape& model, std::span<const ShardShape> tensors) {
  const WeightsLayout weights = lay_out_weights(model, [&](size_t i) { return tensors[i].direct; });
  std::vector<Allocation> all{weights.norms, weights.matrices, lay_out_shards(model, tensors).allocation,
                              lay_out_adapters(tensors).allocation, gathered_weights(model, tensors)};
  if (model.use == NetworkUse::inference) return all;
  std::int64_t trained = 0;
  for (const ShardShape& t : tensors) trained += t.trained ? t.stored : 0;
  for (const BufferLayout& layout :
       {lay_out_gradients(model, tensors), lay_out_masters(model, tensors), lay_out_partial_gradients(tensors)})
    all.push_back(layout.allocation);
  for (const Allocation& moments : moment_allocations(trained)) all.push_back(moments);
  return all;
}

}  // namespace mw::engine
