// SPDX-License-Identifier: Apache-2.0
// What the virtual devices of this program's engine read of their peers for weights and gradients, to the element: from
// the pieces of the PartitionSpecs and the devices' parts of the work, dimension by dimension. It differs from staged
// collectives where pieces are uneven, for no padding is read, and where they lie across. Of one thread.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/mesh/collectives/local_config.h"
#include "core/mesh/collectives/stages.h"

namespace mw::mesh {

class DeviceReads {
 public:
  // All outlive it. Throws what local_config() throws.
  DeviceReads(const model::Config& config, const ComputeSharding& form, const Placement& placement, const Mesh& mesh);
  ~DeviceReads();

  // The stages in which the device reads anything, in their order, `moved` of them as it is read.
  // All that the device computes with and does not store, once.
  const std::vector<Stage>& gather(const PlacedTensor& tensor, int device) const;
  // Of what it stores the terms of all who have some; devices that store the same piece share that work equally and
  // take the rest from each other, where every term is of the whole piece.
  const std::vector<Stage>& sum(const PlacedTensor& tensor, int device) const;

 private:
  struct Lay;
  Lay& lay_of(const PlacedTensor& tensor) const;
  size_t stage(const std::vector<Stage>& stages, int own, int other) const;
  std::vector<std::int64_t> gathered(const Lay& lay, int device) const;
  std::vector<std::int64_t> summed(const Lay& lay, int device) const;

  const ComputeSharding& form_;
  const Mesh& mesh_;
  std::vector<std::vector<int>> at_;  // coordinates, and below the parts, of all devices
  std::vector<LocalConfig> locals_;
  std::vector<int> same_as_;                                  // of each layer the first with the same parts
  mutable std::map<std::string, std::unique_ptr<Lay>> lays_;  // of tensors that lie alike
};

}  // namespace mw::mesh
