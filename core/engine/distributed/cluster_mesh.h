// SPDX-License-Identifier: Apache-2.0
// The Cluster on several devices: one thread and one Network each, in step with one another. Inside the engine room
// only.
#pragma once
#include "core/engine/distributed/cluster_impl.h"
#include "core/engine/distributed/shards.h"

namespace mw::engine {

struct Cluster::Many final : Cluster::Impl {
  struct Node {  // a device with what it holds and computes
    Node(MeshCollectives&& its_part, Bytes capacity);
    Core& core();

    Device device;
    MeshCollectives part;
    std::unique_ptr<Shards> shards;
    std::unique_ptr<Network> network;
    std::unique_ptr<AdamW> optimizer;
  };

  Many(const model::Config& config, const ClusterOptions& options);

  int devices() const override { return fabric.devices(); }
  Node& node(int index) { return *nodes.at(static_cast<size_t>(index)); }
  Device& device(int index) override { return node(index).device; }
  Network& network(int index) override { return *node(index).network; }

  // cluster_mesh.cpp
  void load(const WeightSource& source, const std::function<void(long, long)>& progress) override;
  void init_random(std::uint64_t seed) override;
  void add_lora(const LoraOptions& lora, std::uint64_t seed) override;
  void train(model::TrainMethod method, AdamWOptions adamw) override;

  // cluster_steps.cpp
  void zero_gradients() override;
  LossSum forward_backward(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) override;
  LossSum evaluate(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) override;
  double gradient_norm() override;
  void update(std::int64_t t, float learning_rate, float clip, double norm) override;
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts, const SampleOptions& sample,
                                               std::stop_token stop) override;
  const std::vector<Traffic>& traffic(int index) const override;
  void clear_traffic() override;
  std::vector<KernelTime> take_profile() override;
  void release_step_memory() override;

  // cluster_tensors.cpp
  void read(size_t index, Part part, std::span<float> out) const override;
  int odd_copies(size_t index, Part part) const override;
  void write(size_t index, Part part, std::span<const float> from) override;
  void values_written() override;
  void read_weight(size_t index, std::span<float> out) override;

  static std::span<float> values(const Node& node, size_t index, Part part);  // what the device stores of it

  // Runs `work` on every device; errors say of which.
  void each(const std::function<void(Node&)>& work, std::stop_token stop = {});
  void named(const Port& port, const std::function<void()>& work) const;
  void localise();
  void list_trained(const std::vector<mesh::PlacedTensor>& list);
  template <class SliceOf>
  std::vector<mesh::LocalSlice> slices_of(const SliceOf& slice_of) const;
  template <class Values>
  void give_rows(size_t weight, std::int64_t first, std::span<const Values> rows);
  struct Rows {  // of a batch
    int first = 0, count = 0;
  };
  Rows rows_of(int device, int all) const;
  bool speaks(int device) const;
  template <class Run>
  LossSum step(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop, const Run& run);

  Fabric fabric;
  const mesh::ComputeSharding form;
  Flows flows;
  std::vector<mesh::LocalConfig> locals;  // by device
  std::vector<std::shared_ptr<const Flow>> weight_flows, adapter_flows;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Shards*> shards;
};

}  // namespace mw::engine
