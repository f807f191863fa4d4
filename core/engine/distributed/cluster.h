// SPDX-License-Identifier: Apache-2.0
// A model on a mesh of virtual devices: what a training run drives. Weights, adapters, gradients and moments are stored
// in shards as their PartitionSpecs say; a step computes in the working form of mesh/collectives.h. One device: the
// Network and AdamW as they are, with every core. Driven by one thread; the devices' own threads work inside.
#pragma once
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine/distributed/fabric.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/transformer/network.h"
#include "core/engine/transformer/optimizer.h"
#include "core/mesh/layout/placement.h"

namespace mw::engine {

struct ClusterOptions {
  mesh::Mesh mesh{};  // no axes, or all of size 1: one device
  mesh::ShardingRules rules{};
  model::WeightType weights = model::WeightType::f32;
  Use use = Use::training;  // of one device; a mesh keeps its weights for training
  Bytes capacity{};         // of each device; 0: no limit
  int threads = 1;          // of one device; devices of a mesh have one each
};

class Cluster {
 public:
  // Throws Error: MESH-SIZE, ARCH, the first problem of the placement that makes it impossible.
  Cluster(const model::Config& config, const ClusterOptions& options);
  ~Cluster();

  const model::Config& config() const;  // the whole model's
  const model::TensorInventory& inventory() const;
  const mesh::Mesh& mesh() const;
  const mesh::Placement& placement() const;  // with the adapters, once there are
  int devices() const;
  Device& device(int index);

  void load(const WeightSource& source, const std::function<void(long done, long total)>& progress = {});
  void init_random(std::uint64_t seed);  // the same values on every mesh
  void add_lora(const LoraOptions& options, std::uint64_t seed);
  void train(model::TrainMethod method, AdamWOptions options);  // makes gradients and moments

  // Micro-batches are split by rows over the batch axes. Losses and gradients are those of the whole batch.
  void zero_gradients();
  LossSum forward_backward(const TokenBatch& batch, const StepOptions& options, std::stop_token stop = {});
  LossSum evaluate(const TokenBatch& batch, const StepOptions& options, std::stop_token stop = {});
  double gradient_norm();  // over every distinct shard once, in a fixed order
  void update(std::int64_t t, float learning_rate, float clip, double norm);

  // As Sampler::generate_batch, the same tokens on every mesh up to rounding of the logits.
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts, const SampleOptions& options,
                                               std::stop_token stop = {});

  // Trainables as whole tensors, whatever their shards: for checkpoints, export and proofs. Adapters from add_lora()
  // on, values only until train().
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

  // How many devices hold a part of the tensor whose bits are not those of the device that it is read from: 0.
  int odd_copies(size_t index, Part part) const;

  // What a device sent and received since clear_traffic(); empty on one device.
  const std::vector<Traffic>& traffic(int device) const;
  void clear_traffic();
  std::vector<KernelTime> take_profile();  // sums over devices
  void release_step_memory();
  Network& network(int device);  // one device: the whole model

 private:
  friend struct ClusterFaults;  // of tests: mistakes that a proof has to find
  struct Impl;
  struct One;
  struct Many;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::engine
