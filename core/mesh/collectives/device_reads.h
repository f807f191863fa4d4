// SPDX-License-Identifier: Apache-2.0
// Counts the elements of weights and gradients that the engine's virtual devices read from each other. Differs from
// staged collectives for uneven pieces, whose padding is not read, and where the stored pieces do not line up with the
// pieces that the devices compute with. Not thread-safe.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/mesh/collectives/local_config.h"
#include "core/mesh/collectives/stages.h"

namespace mw::mesh {

class DeviceReads {
 public:
  // The arguments must outlive this object. Throws the errors of local_config().
  DeviceReads(const model::Config& config, const ComputeSharding& form, const Placement& placement, const Mesh& mesh);
  ~DeviceReads();

  // The stages in which the device reads elements, in order, with `moved` as read. gather: each element that the device
  // computes with and does not store, once.
  const std::vector<Stage>& gather(const PlacedTensor& tensor, int device) const;
  // sum: for the piece that the device stores, the terms of all devices that have some. If every term covers the whole
  // piece, devices that store the same piece divide the sum equally and exchange the results.
  const std::vector<Stage>& sum(const PlacedTensor& tensor, int device) const;

 private:
  struct TensorReads;
  TensorReads& lay_of(const PlacedTensor& tensor) const;
  size_t stage(const std::vector<Stage>& stages, int own, int other) const;
  std::vector<std::int64_t> gathered(const TensorReads& lay, int device) const;
  std::vector<std::int64_t> summed(const TensorReads& lay, int device) const;

  const ComputeSharding& form_;
  const Mesh& mesh_;
  std::vector<std::vector<int>> at_;  // coordinates of all devices
  std::vector<LocalConfig> locals_;
  std::vector<int> same_as_;  // for each layer the first layer with the same parts
  mutable std::map<std::string, std::unique_ptr<TensorReads>> reads_;  // shared by tensors with the same layout
};

}  // namespace mw::mesh
