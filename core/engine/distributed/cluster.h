// SPDX-License-Identifier: Apache-2.0
// A model on a mesh of virtual devices, as a training run drives it. Weights, adapters, gradients and moments are
// stored in shards according to their PartitionSpecs; a step computes in the compute sharding of core/mesh/collectives.
// On one device: a Network and AdamW with all cores. Driven by one thread; the devices have threads of their own.
#pragma once
#include <memory>
#include <optional>
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
  NetworkUse use = NetworkUse::training;   // of one device; a mesh keeps its weights for training
  Bytes capacity{};                        // of each device; 0: no limit
  int threads = 1;                         // of one device; devices of a mesh have one each
  std::optional<Arithmetic> arithmetic{};  // none: the processor's best
};

class Cluster {
 public:
  // On a mesh of several devices, else one Network. Throws Error: MESH-SIZE, ARCH, the first problem of the placement
  // that makes it impossible.
  static std::unique_ptr<Cluster> create(const model::Config& config, const ClusterOptions& options);
  virtual ~Cluster() = default;

  const model::Config& config() const { return config_; }  // the whole model's
  const model::TensorInventory& inventory() const { return inventory_; }
  const mesh::Mesh& mesh() const { return options_.mesh; }
  const mesh::Placement& placement() const { return placement_; }  // includes the adapters after add_lora()
  virtual int devices() const = 0;
  virtual Device& device(int index) = 0;
  virtual Network& network(int device) = 0;  // one device: the whole model

  virtual void load(const WeightSource& source, const std::function<void(long done, long total)>& progress = {}) = 0;
  virtual void init_random(std::uint64_t seed) = 0;  // the same values on every mesh
  void add_lora(const options::Lora& options, std::uint64_t seed);
  virtual void train(model::TrainMethod method, options::AdamWOptions options) = 0;  // allocates gradients and moments

  // Micro-batches are split by rows over the batch axes. Losses and gradients are those of the whole batch.
  virtual void zero_gradients() = 0;
  virtual LossSum forward_backward(const TokenBatch& batch, const StepOptions& options, std::stop_token stop = {}) = 0;
  virtual LossSum evaluate(const TokenBatch& batch, const StepOptions& options, std::stop_token stop = {}) = 0;
  virtual double gradient_norm() = 0;  // over every distinct shard once, in a fixed order
  virtual void update(std::int64_t t, float learning_rate, float clip, double norm) = 0;

  // As Sampler::generate_batch, the same tokens on every mesh up to rounding of the logits.
  virtual std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts,
                                                       const options::SampleOptions& options,
                                                       std::stop_token stop = {}) = 0;

  // Trainable tensors as a whole, whatever their shards: for checkpoints, export and proofs. Adapters are available
  // after add_lora(), gradients and moments after train().
  struct Trained {
    std::string name;
    std::int64_t size = 0;
    float rate = 1;  // its learning rate as a multiple of that of the step
  };
  enum class Part { value, gradient, first_moment, second_moment };
  std::span<const Trained> trained() const { return trained_; }
  void read(size_t index, Part part, std::span<float> out) const;
  void write(size_t index, Part part, std::span<const float> values);  // into every device that holds a piece
  virtual void values_written() = 0;                                   // after the last write of values
  void read_weight(size_t inventory_index, std::span<float> out) const;

  // The number of devices whose copy of a part of the tensor differs in any bit from the copy that read() returns; 0
  // unless the replicas have diverged.
  virtual int differing_replicas(size_t, Part) const { return 0; }

  // The collectives of a device since clear_traffic(); empty on one device.
  virtual const std::vector<CollectiveTraffic>& traffic(int device) const = 0;
  virtual void clear_traffic() = 0;
  virtual std::vector<KernelTime> take_profile() = 0;  // sums over devices

 protected:
  Cluster(const model::Config& config, const ClusterOptions& options);

  // add_lora() after the adapters are placed, and accesses whose sizes were checked.
  virtual void add_placed_lora(const options::Lora& options, std::uint64_t seed) = 0;
  virtual void read_part(size_t index, Part part, std::span<float> out) const = 0;
  virtual void write_part(size_t index, Part part, std::span<const float> values) = 0;
  virtual void read_whole_weight(size_t inventory_index, std::span<float> out) const = 0;

  const ClusterOptions options_;  // adapters in the form of PEFT checkpoints
  const model::Config config_;
  const model::TensorInventory inventory_;
  mesh::Placement placement_;  // the placed weights keep their addresses
  std::vector<Trained> trained_;

 private:
  void place(const std::vector<mesh::AdapterShape>& adapters);
};

// A part of parameter `index` of the optimizer. Without an optimizer (null) only values exist; throws Error CLUSTER for
// any other part.
std::span<float> values_of(const TrainableTensor& parameter, AdamW* optimizer, size_t index, Cluster::Part part);

}  // namespace mw::engine
