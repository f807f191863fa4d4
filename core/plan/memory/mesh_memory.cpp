// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/mesh_memory.h"

#include <algorithm>

#include "core/engine/layout/shard_layout.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/collectives/local_config.h"
#include "core/mesh/collectives/stages.h"
#include "core/plan/memory/train_phases.h"

namespace mw::plan {
namespace {

std::int64_t size_of(const mesh::Range& r) {
  return r.end - r.begin;
}

engine::ShardShape shard_of(const mesh::PlacedTensor& tensor, const mesh::LocalSlice& slice,
                            const mesh::ComputeSharding& form, const MeshDevice& at) {
  engine::ShardShape shard{.part = engine::part_of(tensor),
                           .is_embedding = tensor.role == model::Role::embed,
                           .stored = 1,
                           .used = slice.elements()};
  for (const mesh::Range& r : mesh::piece(tensor, *at.mesh, at.device)) shard.stored *= size_of(r);
  const mesh::AxisSet gathered = form.stored(tensor) & ~form.working(tensor);
  shard.direct = gathered == 0 && shard.stored == slice.blocks * size_of(slice.rows) * slice.local_columns();
  const std::vector<mesh::Stage> sums = mesh::sum_stages(tensor, form);
  shard.sums =
      !shard.direct || std::any_of(sums.begin(), sums.end(), [](const mesh::Stage& stage) { return stage.full > 0; });
  return shard;
}

}  // namespace

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape, const MeshDevice& at) {
  check(shape);
  const mesh::ComputeSharding form(*at.mesh, *at.placement, mesh::engine_step({}));
  const mesh::LocalConfig local = mesh::local_config(config, form, *at.placement, *at.mesh, at.device);
  const model::TensorInventory whole(config);
  const bool full = shape.method == model::TrainMethod::full;
  std::vector<engine::ShardShape> shards;
  for (size_t i = 0; i < whole.tensors().size(); ++i) {
    const model::Tensor& t = whole.tensors()[i];
    shards.push_back(shard_of(at.placement->tensors[i], mesh::local_slice(local, t), form, at));
    shards.back().vector = t.hf_shape.size() == 1;
    shards.back().trained = full && !t.is_buffer;
  }
  for (const mesh::PlacedTensor& p : at.placement->adapters) {
    const auto rank =
        std::find_if(p.dims.begin(), p.dims.end(), [](const model::Dim& d) { return d.axis == model::Axis::rank; });
    for (const model::LoraTarget& t : whole.lora_targets()) {
      if (full || t.role != p.base || t.layer != p.layer) continue;
      const mesh::LocalSlice slice = mesh::local_slice(local, t, p.role, static_cast<int>(rank->size));
      shards.push_back(shard_of(p, slice, form, at));
      shards.back().adapter = shards.back().trained = true;
    }
  }
  TrainShape own = shape;
  if (mesh::batch_slice(*at.mesh, at.device).index > 0) own.generate_tokens = 0;  // one prompt at a time
  const engine::ModelShape model = model_shape(config, own, &local);
  return predict_run(model, own, engine::shard_allocations(model, shards));
}

}  // namespace mw::plan
