// SPDX-License-Identifier: Apache-2.0
// A model on a mesh of virtual devices, as a training run drives it. Weights, adapters, gradients and moments are
// stored in shards according to their PartitionSpecs; a step computes in the compute sharding of core/mesh/collectives.
// On one device: a Network and AdamW with all cores. Driven by one thread; the devices have threads of their own.
#pragma once
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine/distributed/communicators.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/transformer/network.h"
#include "core/engine/transformer/optimizer.h"
#include "core/mesh/layout/placement.h"

namespace mw::engine {

struct ClusterOptions {
  mesh::Mesh mesh{};  // no axes, or all of size 1: one device
  mesh::ShardingRules rules{};
  model::WeightType weights = model::WeightType::f32;
  NetworkUse use = NetworkUse::training;  // of one device; a mesh keeps its weights for training
  Bytes capacity{};                       // of each device; 0: no limit
  int threads = 1;                        // of one device; devices of a mesh have one each
};

class Cluster {
 public:
  // Throws Error: MESH-SIZE, ARCH, the first problem of the placement that makes it impossible.
  Cluster(const model::Config& config, const ClusterOptions& options);
  ~Cluster();

  const model::Config& config() const;  // the whole model's
  const model::TensorInventory& inventory() const;
  const mesh::Mesh& mesh() const;
  const mesh::Placement& placement() const;  // includes the adapters after add_lora()
  int devices() const;
  Device& device(int index);

  void load(const WeightSource& source, const std::function<void(long done, long total)>& progress = {});
  void init_random(std::uint64_t seed);  // the same values on every mesh
  void add_lora(const LoraOptions& options, std::uint64_t seed);
  void train(model::TrainMethod method, AdamWOptions options);  // allocates gradients and moments

  // Micro-batches are split by rows over the batch axes. Losses and gradients are those of the whole batch.
  void zero_gradients();
  LossSum forward_backward(const TokenBatch& batch, const StepOptions& options, std::stop_token stop = {});
  LossSum evaluate(const TokenBatch& batch, const StepOptions& options, std::stop_token stop = {});
  double gradient_norm();  // over every distinct shard once, in a fixed order
  void update(std::int64_t t, float learning_rate, float clip, double norm);

  // As Sampler::generate_batch, the same tokens on every mesh up to rounding of the logits.
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts, const SampleOptions& options,
                                               std::stop_token stop = {});

  // Trainable tensors as a whole, whatever their shards: for checkpoints, export and proofs. Adapters are available
  // after add_lora(), gradients and moments after train().
  struct Trained {
    std::string name;
    std::int64_t size = 0;
    bool decays = true;
  };
  enum class Part { value, gradient, first_moment, second_moment };
  std::span<const Trained> trained() const;
  void read(size_t index, Part part, std::span<float> out) const;
  void write(size_t index, Part part, std::span<const float> values);  // into every device that holds a piece
  void values_written();                                               // after the last write of values
  void read_weight(size_t inventory_index, std::span<float> out) const;

  // The number of devices whose copy of a part of the tensor differs in any bit from the copy that read() returns; 0
  // unless the replicas have diverged.
  int differing_replicas(size_t index, Part part) const;

  // What a device sent and received since clear_traffic(); empty on one device.
  const std::vector<Traffic>& traffic(int device) const;
  void clear_traffic();
  std::vector<KernelTime> take_profile();  // sums over devices
  void release_step_memory();
  Network& network(int device);  // one device: the whole model

 private:
  friend struct ClusterFaults;  // tests: injects the mistakes that a proof must find
  struct Impl;
  struct SingleDevice;
  struct MeshBackend;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::engine
