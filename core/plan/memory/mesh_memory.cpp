// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/mesh_memory.h"

#include <algorithm>
#include <map>

#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/collectives/local_config.h"
#include "core/plan/memory/step_buffers.h"

namespace mw::plan {
namespace {

using mesh::PlacedTensor;
using model::Role;

std::int64_t size_of(const mesh::Range& r) {
  return r.end - r.begin;
}

// One tensor on the device.
struct StoredTensor {
  const PlacedTensor* placed = nullptr;
  std::int64_t stored = 0, used = 0;  // elements of the shard; of the working form, padding included
  bool vector = false, adapter = false, is_buffer = false;
  bool direct = false;  // the shard is the working form
  bool sums = false;    // its gradient has terms of other devices
};

// The group of tensors that are used together: those of the head, of the embeddings, or of a layer.
constexpr int kHead = -2, kEmbeddings = -1;
int part_of(const PlacedTensor& tensor) {
  return tensor.layer >= 0 ? tensor.layer : tensor.role == Role::final_norm ? kHead : kEmbeddings;
}

class DevicePlan {
 public:
  DevicePlan(const model::Config& config, const TrainShape& shape, const MeshDevice& at)
      : shape_(shape),
        form_(*at.mesh, *at.placement, mesh::engine_step({})),
        at_(at),
        local_(mesh::local_config(config, form_, *at.placement, *at.mesh, at.device)) {
    const model::TensorInventory whole(config);
    for (size_t i = 0; i < whole.tensors().size(); ++i) {
      const model::Tensor& t = whole.tensors()[i];
      StoredTensor h = held(at.placement->tensors[i], mesh::local_slice(local_, t));
      h.vector = is_vector(t), h.is_buffer = t.is_buffer;
      held_.push_back(h);
    }
    if (shape.method == model::TrainMethod::full) return;
    for (size_t i = 0; i < at.placement->adapters.size(); ++i) {  // A then B of each
      const PlacedTensor& p = at.placement->adapters[i];
      const auto rank =
          std::find_if(p.dims.begin(), p.dims.end(), [](const model::Dim& d) { return d.axis == model::Axis::rank; });
      for (const model::LoraTarget& t : whole.lora_targets())
        if (t.role == p.base && t.layer == p.layer)
          held_.push_back(held(p, mesh::local_slice(local_, t, p.role, static_cast<int>(rank->size))));
      held_.back().adapter = true;
    }
  }

  MemoryPlan run() const {
    TrainShape own = shape_;
    if (mesh::batch_slice(*at_.mesh, at_.device).index > 0) own.generate_tokens = 0;  // one prompt at a time
    StepPlan p(local_.config, mesh::local_inventory(local_), own);
    if (p.config.ple_dim > 0) p.ple_columns = size_of(local_.ple);
    Ledger kept;
    kept[MemoryCategory::weights] = weights(p);
    kept[MemoryCategory::adapters] = buffer_bytes(shards([](const StoredTensor& h) { return h.adapter; }));
    kept[MemoryCategory::collectives] = buffer_bytes(gathered(), 1) + buffer_bytes(partial_sums());
    kept[MemoryCategory::gradients] = buffer_bytes(gradients());
    kept[MemoryCategory::optimizer] = optimizer();
    const Bytes sampled = sampled_logits(p);
    return run_memory(std::move(p), kept, sampled);
  }

 private:
  StoredTensor held(const PlacedTensor& p, const mesh::LocalSlice& slice) const {
    StoredTensor h{.placed = &p, .stored = 1, .used = slice.elements()};
    for (const mesh::Range& r : mesh::piece(p, *at_.mesh, at_.device)) h.stored *= size_of(r);
    const mesh::AxisSet gathered = form_.stored(p) & ~form_.working(p);
    h.direct = gathered == 0 && h.stored == slice.blocks * size_of(slice.rows) * slice.local_columns();
    const bool router = p.base == Role::router_proj || p.base == Role::router_scale || p.base == Role::per_expert_scale;
    const mesh::AxisSet parts = router ? 0 : form_.parallel(p);
    h.sums = !h.direct || form_.batch() != 0 || (parts & ~form_.working(p)) != 0 || repeats(p);
    return h;
  }

  // Devices with the same KV head.
  bool repeats(const PlacedTensor& tensor) const {
    if (tensor.uneven != mesh::UnevenSplit::repeated) return false;
    for (int a = 0; a < form_.axes(); ++a)
      if ((form_.working(tensor) >> a & 1) && form_.size(a) > tensor.shards) return true;
    return false;
  }

  bool trained(const StoredTensor& h) const {
    return shape_.method == model::TrainMethod::full ? !h.is_buffer : h.adapter;
  }
  std::int64_t weight_bytes() const { return shape_.weights == model::WeightType::f32 ? 4 : 2; }

  // Floats of the shards that satisfy `which`.
  template <class Which>
  std::int64_t shards(const Which& which) const {
    std::int64_t floats = 0;
    for (const StoredTensor& h : held_)
      if (which(h)) floats += aligned(h.stored);
    return floats;
  }

  // Tensors that are stored as they are computed with are laid out as on one device, norms apart; the others are
  // shards in
  // the weight type.
  Bytes weights(const StepPlan& plan) const {
    std::int64_t head = 0, norms = 0, matrices = 0, shards = 0;
    for (const model::Layer& l : plan.config.layers) head = std::max(head, std::int64_t{l.head_dim});
    if (plan.config.v_norm) norms += aligned(head);
    for (const StoredTensor& h : held_) {
      if (h.adapter) continue;
      if (!h.direct)
        shards += sizes::aligned_bytes(h.stored * weight_bytes());
      else if (h.vector)
        norms += aligned(h.used);
      else
        matrices += sizes::aligned_bytes(h.used * weight_bytes());
    }
    return buffer_bytes(norms) + buffer_bytes(matrices, 1) + buffer_bytes(shards, 1);
  }

  // Bytes of the largest group of tensors that is gathered at once.
  std::int64_t gathered() const {
    std::map<int, std::int64_t> parts;
    for (const StoredTensor& h : held_) {
      if (h.direct) continue;
      const std::int64_t bytes = sizes::aligned_bytes(h.used * (h.vector || h.adapter ? 4 : weight_bytes()));
      parts[part_of(*h.placed)] += bytes;
      if (h.placed->role == Role::embed) parts[kHead] += bytes;
    }
    std::int64_t most = 0;
    for (const auto& [part, bytes] : parts) most = std::max(most, bytes);
    return most;
  }

  // Floats of gradients before their sum: model-level tensors keep theirs for the whole step, layers share a buffer.
  std::int64_t partial_sums() const {
    std::map<int, std::int64_t> parts;
    for (const StoredTensor& h : held_)
      if (trained(h) && h.sums) parts[part_of(*h.placed)] += aligned(h.used);
    std::int64_t kept = 0, most = 0;
    for (const auto& [part, floats] : parts) part < 0 ? kept += floats : most = std::max(most, floats);
    return kept + most;
  }

  std::int64_t gradients() const {
    std::int64_t floats = 0;
    for (const StoredTensor& h : held_)
      if (trained(h)) floats += aligned(h.sums ? h.stored : h.used);
    return floats;
  }

  Bytes optimizer() const {
    std::int64_t values = 0;
    for (const StoredTensor& h : held_)
      if (trained(h)) values += h.stored;
    const bool masters = shape_.method == model::TrainMethod::full && shape_.weights == model::WeightType::bf16;
    return buffer_bytes(values) * 2 +
           buffer_bytes(masters ? shards([&](const StoredTensor& h) { return trained(h); }) : 0);
  }

  // Logits in addition to those of the loss: the whole vocabulary if it is split, f32 if the loss has another type.
  Bytes sampled_logits(const StepPlan& plan) const {
    Bytes sum = streams_loss(plan) ? buffer_bytes(plan.config.vocab) : Bytes(0);
    const PlacedTensor* head = form_.find(Role::embed, -1);
    std::int64_t room = plan.config.vocab;
    for (int a = 0; head && a < form_.axes(); ++a)
      if (form_.parallel(*head) >> a & 1) room *= form_.size(a);
    return room > plan.config.vocab ? sum + buffer_bytes(room) : sum;
  }

  const TrainShape& shape_;
  const mesh::ComputeSharding form_;
  const MeshDevice at_;
  const mesh::LocalConfig local_;
  std::vector<StoredTensor> held_;
};

}  // namespace

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape, const MeshDevice& at) {
  check(shape);
  return DevicePlan(config, shape, at).run();
}

}  // namespace mw::plan
