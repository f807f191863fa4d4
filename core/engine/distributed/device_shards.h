// SPDX-License-Identifier: Apache-2.0
// The shards of weights, adapters, gradients and f32 masters that one device of a mesh stores, and how they become what
// the device computes with. Used by the device's thread; whole tensors are read and written by the driving thread
// between steps.
//
// Memory of a device, each region on a cache line, each buffer in whole pages:
//   weights      direct matrices and vectors as ModelWeights stores them; shards of the others, vectors in the weight
//                type, too
//   adapters     A, B and the magnitudes of DoRA: shards, f32. Norms of the rows that the device computes with
//   collectives  gathered weights that are not direct: the largest of the embeddings' part (embedding,
//                per-layer embedding, its projection and norm), the head's (final norm, embedding) and each layer's
//                with its adapters. Gradients before their sum: the model-level ones, and the largest layer's
//   gradients    of the stored shards, f32; optimizer: moments of them, and f32 masters of bf16 weights
#pragma once
#include <deque>
#include <span>
#include <vector>

#include "core/engine/distributed/cluster.h"
#include "core/engine/distributed/mesh_collectives.h"
#include "core/engine/transformer/transformer.h"
#include "core/mesh/collectives/reshard_plan.h"

namespace mw::engine {

class DeviceShards : public ShardedStorage {
 public:
  // The plans must outlive it.
  DeviceShards(MeshCollectives& part, const mesh::ReshardPlans& plans);

  // Allocates the shards. peers: the shards of every device, including its own; they must not move.
  void attach(Transformer& net, std::span<DeviceShards* const> peers);
  void load_rows(size_t weight, std::int64_t first, std::span<const float> values);          // whole rows of the files
  void load_rows(size_t weight, std::int64_t first, std::span<const std::uint16_t> values);  // bf16
  void init_random(std::uint64_t seed);
  // plans: of a placement with the adapters; must outlive them.
  void add_lora(const options::Lora& options, std::uint64_t seed, const mesh::ReshardPlans& plans);
  void set_trainable(model::TrainMethod method);
  void zero_gradients();  // at the start of a step, whose first forward pass computes the norms of DoRA's rows again
  void values_changed();  // after the optimizer wrote f32 values
  void forget_row_norms() { std::fill(norms_known_.begin(), norms_known_.end(), false); }

  // Trainables in the order of the whole model's, with the device's shards of them.
  std::span<const TrainableTensor> parameters() const { return net_->weights.parameters; }
  double square_sum(size_t trained) const;  // of the gradient; 0 where another device counts the piece
  // Between the shard's `stored` values and the tensor of the files [rows, cols].
  void copy_out(size_t trained, std::span<const float> stored, std::span<float> whole) const;
  void copy_in(size_t trained, std::span<const float> whole, std::span<float> stored) const;
  bool counts(size_t trained) const { return held_[trained_[trained]].plan->counts(device_); }
  void read_weight(size_t weight, std::span<float> whole) const;  // the device's elements of it
  bool counts_weight(size_t weight) const { return held_[weight].plan->counts(device_); }

  bool is_direct(size_t weight) const override { return held_[weight].plan->direct; }
  void gather_weights(int part, mesh::Phase phase) override;
  void reduce_gradients(int part) override;

 private:
  friend struct ClusterFaults;
  // A tensor of an adapter, and where ModelWeights keeps the pointers to its values and gradients.
  struct AdapterPart {
    Adapter* adapter = nullptr;
    float* Adapter::*value = nullptr;
    float* Adapter::*gradient = nullptr;
  };
  struct Held {  // one tensor
    const mesh::PlacedTensor* placed = nullptr;
    const mesh::ReshardPlan* plan = nullptr;
    const mesh::DeviceCopies* copies = nullptr;  // the device's of the plan
    Weight* used = nullptr;                      // in ModelWeights or adapter_forms_
    Weight shard{};                              // what is stored, unless it is direct
    float* gradient = nullptr;                   // of what is stored
    float* partial = nullptr;                    // of what is computed with, where the sum is still to come
    AdapterPart part{};                          // of an adapter, else empty
    bool is_adapter() const { return part.adapter != nullptr; }
  };
  const mesh::IndexRegion& stored(const Held& h) const { return h.plan->stored[static_cast<size_t>(device_)]; }
  Weight& shard(Held& h) { return h.plan->direct ? *h.used : h.shard; }
  const Weight& shard(const Held& h) const { return h.plan->direct ? *h.used : h.shard; }
  // Index in the lists by part. A tied embedding belongs to the embeddings and is gathered for the head, too.
  static size_t index_of(int part) { return static_cast<size_t>(part + 2); }
  static size_t index_of(const mesh::PlacedTensor& p) { return index_of(part_of(p)); }

  float rate_of(const Held& h) const;  // of learning, as a multiple of that of the step
  ShardShape shape_of(const Held& h) const;
  std::vector<ShardShape> shapes() const;  // of held_, then row_norms()
  const model::Tensor& tensor_of(const Held& weight) const;
  void place_used(Held& h, std::byte* at) const;
  void allocate_working();
  void update_row_norms(int layer);
  template <class Values>
  void put_rows(Held& h, std::int64_t first, std::span<const Values> values);
  template <class Values>
  void put_row(Weight& w, std::int64_t row, std::span<const Values> values);
  template <class Each>
  void for_runs(const Held& h, const Each& each) const;
  void read_shard(const Held& h, std::span<float> out) const;
  void place_partials(std::span<const ShardShape> tensors);

  // Bytes read from peers by stage; the last entry: from the device itself.
  using Read = std::vector<std::int64_t>;
  void gather(size_t index, Read& read);
  void add_terms(size_t index, Read& read);
  void take_sums(size_t index, Read& read);
  void count(const Held& h, std::span<const mesh::Stage> stages, const Read& read, mesh::Phase phase,
             Communicator::CallTime spent);

  Held held(const mesh::PlacedTensor& placed, const mesh::ReshardPlans& plans) const;

  MeshCollectives& part_;
  const int device_;
  Transformer* net_ = nullptr;
  std::span<DeviceShards* const> peers_;
  std::vector<Held> held_;                              // weights, then adapters
  std::deque<Weight> adapter_forms_;                    // the tensors of adapters
  std::vector<size_t> trained_;                         // in held_
  std::vector<std::vector<size_t>> gathered_, summed_;  // by part + 2
  DeviceBuffer<std::byte> shards_, working_;
  DeviceBuffer<float> partials_;
  bool dirty_ = false;             // a step left partial sums
  std::vector<bool> norms_known_;  // by layer: the norms are those of the present values
};

}  // namespace mw::engine
