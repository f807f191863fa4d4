// SPDX-License-Identifier: Apache-2.0
// The implementation of a Cluster: one for a single device, one for a mesh. Internal to the engine.
#pragma once
#include "core/engine/distributed/cluster.h"

namespace mw::engine {

struct Cluster::Impl {
  static std::unique_ptr<Impl> on_mesh(const model::Config& config, const ClusterOptions& options);
  Impl(const model::Config& config, const ClusterOptions& options);
  virtual ~Impl() = default;

  virtual int devices() const = 0;
  virtual Device& device(int index) = 0;
  virtual Network& network(int device) = 0;
  virtual void load(const WeightSource& source, const std::function<void(long, long)>& progress) = 0;
  virtual void init_random(std::uint64_t seed) = 0;
  virtual void add_lora(const LoraOptions& options, std::uint64_t seed) = 0;  // after place()
  virtual void train(model::TrainMethod method, AdamWOptions options) = 0;
  virtual void zero_gradients() = 0;
  virtual LossSum forward_backward(const TokenBatch& batch, const StepOptions& options, std::stop_token stop) = 0;
  virtual LossSum evaluate(const TokenBatch& batch, const StepOptions& options, std::stop_token stop) = 0;
  virtual double gradient_norm() = 0;
  virtual void update(std::int64_t t, float learning_rate, float clip, double norm) = 0;
  virtual std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts,
                                                       const SampleOptions& options, std::stop_token stop) = 0;
  virtual void read(size_t index, Part part, std::span<float> out) const = 0;
  virtual void write(size_t index, Part part, std::span<const float> values) = 0;
  virtual void values_written() = 0;
  virtual void read_weight(size_t index, std::span<float> out) = 0;
  virtual int differing_replicas(size_t, Part) const { return 0; }
  virtual const std::vector<Traffic>& traffic(int device) const = 0;
  virtual void clear_traffic() = 0;
  virtual std::vector<KernelTime> take_profile() = 0;
  virtual void release_step_memory() = 0;

  // Places the adapters on the mesh, too; the placed tensors keep their addresses.
  void place(const std::vector<mesh::AdapterShape>& adapters);
  void check_trained(size_t index, size_t values) const;  // throws Error for another size

  const ClusterOptions options;  // adapters in the form of PEFT checkpoints
  const model::Config config;
  const model::TensorInventory inventory;
  mesh::Placement placement;
  std::vector<Trained> trained;
};

// A part of parameter `index` of the optimizer. Without an optimizer (null) only values exist; throws Error CLUSTER for
// any other part.
std::span<float> values_of(const Parameter& parameter, AdamW* optimizer, size_t index, Cluster::Part part);

}  // namespace mw::engine
