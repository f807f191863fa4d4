// SPDX-License-Identifier: Apache-2.0
// How each tensor is sharded while a step computes with it, as opposed to how it is stored. Immutable; any thread.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mesh/collectives/collectives.h"

namespace mw::mesh {

using AxisSet = std::uint32_t;  // bit i: mesh axis i

enum class Block { attention, mlp, experts, ple, vocab, none };
Block block_of(model::Role role);  // for adapters pass the role of the base
// Whether a block that computes in parallel splits the inputs of this projection, not its outputs.
bool splits_inputs(model::Role projection);
std::string_view to_string(Block block);

class ComputeSharding {
 public:
  ComputeSharding(const Mesh& mesh, const Placement& placement, const StepShape& step);

  AxisSet batch() const { return batch_; }  // axes that split the rows; axes of one device are left out
  AxisSet model() const { return model_; }  // the other axes of more than one device
  // The model axes over which the block computes in parallel.
  AxisSet parallel(Block block, int layer) const;
  AxisSet parallel(const PlacedTensor& tensor) const;  // of the tensor's block; a vocabulary has its own
  // The batch axes over which the layer's experts stay split, so that tokens are exchanged.
  AxisSet expert_axes(int layer) const;
  // The model axes along which the residual stream is split.
  AxisSet residual() const { return residual_; }
  AxisSet stored(const PlacedTensor& tensor) const;  // axes that split the stored tensor
  AxisSet working(
      const PlacedTensor& tensor) const;  // the subset of stored() that still splits it during the computation
  const PlacedTensor* find(model::Role role, int layer) const;

  int size(int axis) const { return sizes_[static_cast<size_t>(axis)]; }
  const std::string& name(int axis) const { return names_[static_cast<size_t>(axis)]; }
  int axes() const { return static_cast<int>(sizes_.size()); }

 private:
  AxisSet set_of(const std::vector<std::string>& axes) const;
  AxisSet on(const PlacedTensor* p, model::Axis dimension) const;

  std::vector<std::string> names_;
  std::vector<int> sizes_;
  AxisSet batch_ = 0, model_ = 0, residual_ = 0, exchanged_ = 0;
  std::unordered_map<int, const PlacedTensor*> at_;             // layer and role
  std::unordered_map<int, std::array<AxisSet, 4>> parallel_{};  // layer -> per block
};

}  // namespace mw::mesh
