// SPDX-License-Identifier: Apache-2.0
// How each tensor is sharded while a step computes with it, as opposed to how it is stored. Immutable; any thread.
#pragma once
#include <array>
#include <cstdint>
#include <span>
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

// The collectives, one per mesh axis, that gather a stored tensor for the computation and reduce its gradient.
// collectives() lists them, and the engine attributes each read from a peer to one of them.
struct Stage {
  CollectiveKind kind{};
  int axis = 0, group = 1;
  Cause cause{};
  // Elements of one call, as in Collective, as if all pieces had the size of the largest. 0: nothing moves along this
  // axis if the devices store the pieces they compute with.
  std::int64_t full = 0, moved = 0;
};
// One stage for each axis of more than one device. An element read from a peer belongs to the first stage along whose
// axis the two devices differ. Gathers run in the opposite order (inner axes first), sums in this order.
std::vector<Stage> gather_stages(const PlacedTensor& tensor, const ComputeSharding& form);
std::vector<Stage> sum_stages(const PlacedTensor& tensor,
                              const ComputeSharding& form);  // of the gradient, scattered to the stored sharding
// The index of the stage to which a read belongs; `own` and `other` are mesh coordinates. stages.size() if they are
// equal.
size_t stage_of(std::span<const Stage> stages, std::span<const int> own, std::span<const int> other);

// The axes along which devices hold different terms of the gradient, or parts of the tensor.
AxisSet contributing(const PlacedTensor& tensor, const ComputeSharding& form);
// The devices that differ from `device` along `axes` only, and itself, ascending.
std::vector<int> group_of(const Mesh& mesh, int device, AxisSet axes);

}  // namespace mw::mesh
