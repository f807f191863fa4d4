// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/shard_layout.h"

#include <algorithm>
#include <map>

#include "core/engine/layout/weights_layout.h"

namespace mw::engine {
namespace {

std::int64_t weight_bytes(const ModelShape& model) {
  return model.type == model::WeightType::f32 ? 4 : 2;
}

// floats: of a tensor; negative: none.
template <class Floats>
BufferLayout lay_out_floats(std::span<const ShardShape> tensors, const Floats& floats) {
  BufferLayout out;
  Carver carver(0);
  for (const ShardShape& tensor : tensors) {
    const std::int64_t count = floats(tensor);
    out.fields.push_back(count >= 0 ? carver.take_floats(count) : Field());
  }
  out.allocation.bytes = Bytes(carver.used());
  return out;
}

}  // namespace

int part_of(const mesh::PlacedTensor& tensor) {
  return tensor.layer >= 0 ? tensor.layer : tensor.role == model::Role::final_norm ? kHeadPart : kEmbeddingsPart;
}

BufferLayout lay_out_shards(const ModelShape& model, std::span<const ShardShape> tensors) {
  BufferLayout out;
  Carver carver(0);
  for (const ShardShape& t : tensors) {
    Field& field = out.fields.emplace_back();
    if (t.direct || t.adapter || t.stored == 0) continue;
    field = carver.take(t.stored * weight_bytes(model));
  }
  out.allocation = {MemoryCategory::weights, "weight shards", Bytes(carver.used())};
  return out;
}

BufferLayout lay_out_adapter_shards(std::span<const ShardShape> tensors) {
  BufferLayout out = lay_out_floats(tensors, [](const ShardShape& t) { return t.adapter ? t.stored : -1; });
  out.allocation.category = MemoryCategory::adapters, out.allocation.label = "LoRA adapters";
  return out;
}

BufferLayout lay_out_shard_gradients(const ModelShape& model, std::span<const ShardShape> tensors) {
  BufferLayout out = lay_out_floats(tensors, [](const ShardShape& t) {
    return !t.trained ? -1 : t.sums ? t.stored : t.used;
  });
  out.allocation = gradient_allocation(model, out.allocation.bytes);
  return out;
}

BufferLayout lay_out_shard_masters(const ModelShape& model, std::span<const ShardShape> tensors) {
  const bool kept = model.full && model.type == model::WeightType::bf16;
  BufferLayout out = lay_out_floats(tensors, [&](const ShardShape& t) { return kept && t.trained ? t.stored : -1; });
  out.allocation = master_allocation(out.allocation.bytes);
  return out;
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

std::int64_t gathered_bytes(const ModelShape& model, const ShardShape& t) {
  return aligned_bytes(t.used * (t.vector || t.adapter ? 4 : weight_bytes(model)));
}

Allocation gathered_weights(const ModelShape& model, std::span<const ShardShape> tensors) {
  std::map<int, std::int64_t> parts;
  for (const ShardShape& t : tensors) {
    if (t.direct) continue;
    const std::int64_t bytes = gathered_bytes(model, t);
    parts[t.part] += bytes;
    if (t.is_embedding) parts[kHeadPart] += bytes;
  }
  std::int64_t most = 0;
  for (const auto& [part, bytes] : parts) most = std::max(most, bytes);
  return {MemoryCategory::collectives, "gathered weights", Bytes(most)};
}

std::vector<Allocation> shard_allocations(const ModelShape& model, std::span<const ShardShape> tensors) {
  const WeightsLayout weights = lay_out_weights(model, [&](size_t i) { return tensors[i].direct; });
  std::int64_t trained = 0;
  for (const ShardShape& t : tensors) trained += t.trained ? t.stored : 0;
  const auto [first, second] = moment_allocations(trained);
  return {weights.norms,
          weights.matrices,
          lay_out_shards(model, tensors).allocation,
          lay_out_adapter_shards(tensors).allocation,
          gathered_weights(model, tensors),
          lay_out_shard_gradients(model, tensors).allocation,
          lay_out_shard_masters(model, tensors).allocation,
          lay_out_partial_gradients(tensors).allocation,
          first,
          second};
}

}  // namespace mw::engine
