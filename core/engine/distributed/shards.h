// SPDX-License-Identifier: Apache-2.0
// What one device of a mesh stores: its shards of weights, adapters, gradients and f32 masters, and how they become
// what Core computes with. Inside the engine room; used by the device's thread, but reading and writing of whole
// tensors, which the driving thread does between steps.
//
// Memory of a device, each region on a cache line, each buffer in whole pages:
//   weights      direct matrices and vectors as Core keeps them; shards of the others, vectors in the weight type, too
//   adapters     A and B: shards, f32
//   collectives  of the working form, for all that is not direct: the largest of the embeddings' part (embedding,
//                per-layer embedding, its projection and norm), the head's (final norm, embedding) and each layer's
//                with its adapters. And gradients before their sum: the model-level ones, and the largest layer's
//   gradients    of the stored shards, f32; optimizer: moments of them, and f32 masters of bf16 weights
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/engine/distributed/cluster.h"
#include "core/engine/distributed/mesh_collectives.h"
#include "core/engine/distributed/shard_map.h"
#include "core/engine/transformer/core.h"

namespace mw::engine {

class Shards : public ShardedStorage {
 public:
  // flows: of all weights in inventory order. Both outlive it.
  Shards(MeshCollectives& part, const mesh::Placement& placement, std::span<const std::shared_ptr<const Flow>> flows);

  // Room for the shards. peers: of every device, own included; they stay where they are.
  void attach(Core& core, std::span<Shards* const> peers);
  void load_rows(size_t weight, std::int64_t first, std::span<const float> values);          // whole rows of the files
  void load_rows(size_t weight, std::int64_t first, std::span<const std::uint16_t> values);  // bf16
  void init_random(std::uint64_t seed);
  // flows: of placement.adapters.
  void add_lora(const LoraOptions& options, std::uint64_t seed, std::span<const std::shared_ptr<const Flow>> flows);
  void set_trainable(model::TrainMethod method);
  void zero_gradients();
  void values_changed();  // after the optimizer wrote f32 values

  // Trainables in the order of the whole model's, with the device's shards of them.
  std::span<const Parameter> parameters() const { return core_->parameters; }
  double square_sum(size_t trained) const;  // of the gradient; 0 where another device counts the piece
  // Between the shard's `stored` values and the tensor of the files [rows, cols].
  void copy_out(size_t trained, std::span<const float> stored, std::span<float> whole) const;
  void copy_in(size_t trained, std::span<const float> whole, std::span<float> stored) const;
  bool counts(size_t trained) const;
  void read_weight(size_t weight, std::span<float> whole) const;  // the device's elements of it
  bool counts_weight(size_t weight) const;

  bool is_direct(size_t weight) const override { return held_[weight].flow->direct; }
  void gather_weights(int part, mesh::Phase phase) override;
  void reduce_gradients(int part) override;

 private:
  friend struct ClusterFaults;
  struct Held {  // one tensor
    const mesh::PlacedTensor* placed = nullptr;
    const Flow* flow = nullptr;
    Weight* used = nullptr;      // Core's, or of adapter_forms_
    Weight shard{};              // what is stored, unless it is direct
    float* gradient = nullptr;   // of what is stored
    float* partial = nullptr;    // of what is computed with, where the sum is still to come
    float** value_at = nullptr;  // Core's pointer to an adapter's values
  };
  const Region& stored(const Held& h) const { return h.flow->stored[static_cast<size_t>(device_)]; }
  Weight& shard(Held& h) { return h.flow->direct ? *h.used : h.shard; }
  const Weight& shard(const Held& h) const { return h.flow->direct ? *h.used : h.shard; }
  // Of the lists by part. A tied embedding belongs to the embeddings, though it is gathered for the head, too.
  static size_t index_of(int part) { return static_cast<size_t>(part + 2); }
  static size_t index_of(const mesh::PlacedTensor& p) {
    return index_of(p.layer >= 0 ? p.layer : p.role == model::Role::final_norm ? kHead : kEmbeddings);
  }

  // shards.cpp
  std::int64_t place_used(Held& h, std::byte* at) const;
  void allocate_working();
  template <class Values>
  void put_rows(Held& h, std::int64_t first, std::span<const Values> values);
  template <class Values>
  void put_row(Weight& w, std::int64_t row, std::span<const Values> values);
  template <class Each>
  void for_runs(const Held& h, const Each& each) const;
  void read_shard(const Held& h, std::span<float> out) const;
  std::int64_t partial_floats(const Held& h) const;
  std::int64_t gradient_floats(const Held& h) const;
  void place_partials();

  // shard_moves.cpp
  struct Spent {
    double seconds = 0, waited = 0;
  };
  // What was read of each peer, by stage; that of the device itself is the last.
  using Read = std::vector<std::int64_t>;  // bytes
  void gather(size_t index, Read& read);
  void add_terms(size_t index, Read& read);
  void take_sums(size_t index, Read& read);
  void count(const Held& h, std::span<const mesh::Stage> stages, const Read& read, mesh::Phase phase, Spent spent);

  MeshCollectives& part_;
  const mesh::Placement& placement_;
  const int device_;
  Core* core_ = nullptr;
  std::span<Shards* const> peers_;
  std::vector<Held> held_;                              // weights, then adapters
  std::deque<Weight> adapter_forms_;                    // A and B of each adapter
  std::vector<size_t> trained_;                         // in held_
  std::vector<std::vector<size_t>> gathered_, summed_;  // by part + 2
  Buffer<std::byte> shards_, working_;
  Buffer<float> partials_;
  bool dirty_ = false;  // a step left partial sums
};

}  // namespace mw::engine
