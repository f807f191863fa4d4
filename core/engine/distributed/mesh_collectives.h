// SPDX-License-Identifier: Apache-2.0
// The collectives of a network that computes one device's part of a model, over the device's Communicator.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/engine/distributed/communicators.h"
#include "core/engine/transformer/collective_hooks.h"

namespace mw::engine {

class MeshCollectives final : public CollectiveHooks {
 public:
  // The working form and the port must outlive it. Throws what check_model and mesh::local_config throw.
  MeshCollectives(const model::Config& config, const mesh::ComputeSharding& working_form,
                  const mesh::Placement& placement, Communicator& device_port);

  const model::Config& whole_config() const override { return whole_; }
  const mesh::LocalConfig& local() const override { return local_; }
  ShardedStorage* storage() const override { return storage_; }
  void set_storage(ShardedStorage* storage) { storage_ = storage; }
  Communicator& port() const { return port_; }
  void set_phase(mesh::Phase phase) override { phase_ = phase; }

  bool splits(mesh::Block block, int layer) const override { return form_.parallel(block, layer) != 0; }
  void sum_block(mesh::Block block, int layer, std::span<float> values) override;
  void sum_row_squares(model::Role projection, int layer, std::span<float> values) override;
  void sum_router_gradients(int layer, std::span<float> values) override;
  void sum_embedding_rows(std::span<float> rows) override;
  void sum_per_layer_embedding_rows(std::span<float> rows) override;
  void sum_per_layer_gradients(std::span<float> values) override;
  bool splits_vocab() const override { return vocab_axes_ != 0; }
  void max_over_vocab(std::span<float> values) override;
  void sum_over_vocab(std::span<float> values) override;
  void sum_head_gradient(std::span<float> values) override;
  void gather_logits(std::span<const float> own, std::span<float> out) override;

 private:
  void all_reduce(mesh::AxisSet axes, const CallTag& why, std::span<float> values, Reduce how = Reduce::sum);

  model::Config whole_;
  const mesh::ComputeSharding& form_;
  Communicator& port_;
  mesh::LocalConfig local_;
  ShardedStorage* storage_ = nullptr;
  mesh::Phase phase_ = mesh::Phase::forward;
  mesh::AxisSet vocab_axes_ = 0, ple_vocab_axes_ = 0, ple_axes_ = 0;
  std::vector<int> vocab_order_;  // axes of the vocabulary, outermost first
  std::vector<std::string> router_names_;
  std::vector<std::array<std::string, 4>> block_names_;  // "layers.3.attention"
};

}  // namespace mw::engine
