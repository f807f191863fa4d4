// SPDX-License-Identifier: Apache-2.0
// A Cluster of several devices, each with a thread and a Network of its own. Internal to the engine.
#pragma once
#include <list>

#include "core/engine/distributed/cluster.h"
#include "core/engine/distributed/device_shards.h"

namespace mw::engine {

struct MeshCluster final : Cluster {
  struct Node {  // one device
    Node(MeshCollectives&& its_part, const ClusterOptions& options);
    Transformer& net();

    Device device;
    MeshCollectives part;
    std::unique_ptr<DeviceShards> shards;
    std::unique_ptr<Network> network;
    std::unique_ptr<AdamW> optimizer;
  };

  MeshCluster(const model::Config& config, const ClusterOptions& options);

  int devices() const override { return communicators.devices(); }
  Node& node(int index) { return *nodes.at(static_cast<size_t>(index)); }
  Device& device(int index) override { return node(index).device; }
  Network& network(int index) override { return *node(index).network; }

  void load(const WeightSource& source, const std::function<void(long, long)>& progress) override;
  void init_random(std::uint64_t seed) override;
  void add_placed_lora(const options::Lora& lora, std::uint64_t seed) override;
  void train(model::TrainMethod method, options::AdamWOptions adamw) override;

  void zero_gradients() override;
  LossSum forward_backward(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) override;
  LossSum evaluate(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) override;
  double gradient_norm() override;
  void update(std::int64_t t, float learning_rate, float clip, double norm) override;
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts,
                                               const options::SampleOptions& sample, std::stop_token stop) override;
  const std::vector<CollectiveTraffic>& traffic(int index) const override;
  void clear_traffic() override;
  std::vector<KernelTime> take_profile() override;

  void read_part(size_t index, Part part, std::span<float> out) const override;
  int differing_replicas(size_t index, Part part) const override;
  void write_part(size_t index, Part part, std::span<const float> from) override;
  void values_written() override;
  void read_whole_weight(size_t index, std::span<float> out) const override;

  static std::span<float> values(const Node& node, size_t index, Part part);  // the device's shard

  // Runs `work` on every device; errors name the device.
  void each(const std::function<void(Node&)>& work, std::stop_token stop = {});
  void named(const Communicator& port, const std::function<void()>& work) const;
  void list_trained(const std::vector<mesh::PlacedTensor>& list);
  void init_magnitudes();
  template <class Values>
  void store_rows(size_t weight, std::int64_t first, std::span<const Values> rows);
  struct Rows {  // of a batch
    int first = 0, count = 0;
  };
  Rows rows_of(int device, int all) const;
  bool reports_rows(int device) const;
  template <class Run>
  LossSum step(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop, const Run& run);

  CommunicatorGroup communicators;
  const mesh::ComputeSharding form;
  std::list<mesh::ReshardPlans> plans;  // of the weights, and of the adapters each time that they are added
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<DeviceShards*> shards;
};

}  // namespace mw::engine
