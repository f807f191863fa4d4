// SPDX-License-Identifier: Apache-2.0
// How a tensor lies while a step computes with it (see collectives.h): axes as bits, so that sets of them are cheap.
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
Block block_of(model::Role role);  // of the base, for adapters
std::string_view to_string(Block block);

class ComputeSharding {
 public:
  ComputeSharding(const Mesh& mesh, const Placement& placement, const StepShape& step);

  AxisSet batch() const { return batch_; }  // axes of more than one device that split the rows
  AxisSet model() const { return model_; }  // the others of more than one device
  // Model axes over which the block computes in parallel.
  AxisSet parallel(Block block, int layer) const;
  AxisSet parallel(const PlacedTensor& p) const;  // of its block; vocabularies: their own
  // Model axes along which the stream between blocks is split.
  AxisSet residual() const { return residual_; }
  AxisSet stored(const PlacedTensor& p) const;   // axes that split it
  AxisSet working(const PlacedTensor& p) const;  // those of them that still split it in use
  const PlacedTensor* find(model::Role role, int layer) const;

  int size(int axis) const { return sizes_[static_cast<size_t>(axis)]; }
  const std::string& name(int axis) const { return names_[static_cast<size_t>(axis)]; }
  int axes() const { return static_cast<int>(sizes_.size()); }

 private:
  AxisSet set_of(const std::vector<std::string>& axes) const;
  AxisSet on(const PlacedTensor* p, model::Axis dimension) const;

  std::vector<std::string> names_;
  std::vector<int> sizes_;
  AxisSet batch_ = 0, model_ = 0, residual_ = 0;
  std::unordered_map<int, const PlacedTensor*> at_;             // layer and role
  std::unordered_map<int, std::array<AxisSet, 4>> parallel_{};  // layer -> per block
};

}  // namespace mw::mesh
