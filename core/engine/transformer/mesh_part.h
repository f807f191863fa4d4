// SPDX-License-Identifier: Apache-2.0
// What makes a Network compute a device's part of a model on a mesh: its local config, and the sums with the other
// devices. Used by the device's own thread; null in a Network of one device.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/engine/distributed/fabric.h"
#include "core/mesh/collectives/local_config.h"

namespace mw::engine {

// Where a device's weights and gradients lie otherwise than Core reads and writes them (the cluster's shards). Layers
// count from 0; kEmbeddings: the tables that are looked up and what per-layer inputs are made of; kHead: the final norm
// and the output matrix. Every device of a mesh gets the same calls in every step, one without tokens, too.
struct Storage {
  static constexpr int kEmbeddings = -1, kHead = -2;
  virtual ~Storage() = default;
  // The weight lies in Core's own form all the time; Core has no room for the others. By inventory index.
  virtual bool direct(size_t weight) const = 0;
  // Its weights are read from now on, until the next call. recompute: for the backward, its recomputation included.
  virtual void enter(int part, mesh::Phase phase) = 0;
  // Training: the gradients of its tensors have this micro-batch's sum over the device's rows.
  virtual void leave(int part) = 0;
};

struct MeshPart {
  // The form and the port outlive it. Throws what check_model and mesh::local_config throw.
  MeshPart(const model::Config& config, const mesh::WorkingForm& working_form, const mesh::Placement& placement,
           Port& device_port);

  model::Config whole;
  const mesh::WorkingForm& form;
  Port& port;
  mesh::LocalConfig local;
  Storage* storage = nullptr;  // null: weights lie in Core's form, gradients stay there

  mesh::Phase phase = mesh::Phase::forward;  // of the layer that is computed

  // Sums over the axes along which the block is in parts; nothing where it is whole.
  void sum(mesh::Block block, int layer, std::span<float> values);
  // Gradients of what the router gives its experts, of which each device sees its columns.
  void sum_shares(int layer, std::span<float> values);
  bool splits(mesh::Block block, int layer) const { return form.parallel(block, layer) != 0; }

  // --- The vocabulary ---
  mesh::AxisSet vocab_axes = 0, ple_vocab_axes = 0;
  bool splits_vocab() const { return vocab_axes != 0; }
  // Rows looked up in the device's part of a table; zero elsewhere.
  void sum_lookups(std::span<float> rows);
  void sum_per_layer_lookups(std::span<float> rows);
  void sum_per_layer_gradients(std::span<float> values);  // of per-layer inputs, each device its columns
  void reduce_softmax(std::span<float> values, Reduce how);
  void sum_head_gradient(std::span<float> values);  // d of the final norm's output
  // One row of logits of the whole vocabulary. out: logits_room() floats, those of the vocabulary first.
  void gather_logits(std::span<const float> mine, std::span<float> out);
  std::int64_t logits_room() const;

 private:
  void all_reduce(mesh::AxisSet axes, const CallFor& why, std::span<float> values, Reduce how = Reduce::sum);

  mesh::AxisSet ple_axes_ = 0;
  std::vector<int> vocab_order_;  // axes of the vocabulary, outermost first
  std::vector<std::string> router_names_;
  std::vector<std::array<std::string, 4>> block_names_;  // "layers.3.attention"
};

}  // namespace mw::engine
