// SPDX-License-Identifier: Apache-2.0
// How a tensor comes from where it is stored to where it is computed with, and its gradient back: a collective for each
// mesh axis. What collectives() lists of weights and gradients, and under which name a device counts what it reads of a
// peer. Plain values; any thread.
#pragma once
#include <span>
#include <vector>

#include "core/mesh/collectives/compute_sharding.h"

namespace mw::mesh {

struct Stage {
  CollectiveKind kind{};
  int axis = 0, group = 1;
  Cause cause{};
  // Elements of one call, as in Collective: of pieces that are all as large as the largest. 0: nothing comes this way,
  // as long as pieces lie with the devices that compute with them.
  std::int64_t full = 0, moved = 0;
};
// Each axis of more than one device has one, in this order: what a peer has belongs to the first along whose axis it
// differs. Gathers are made in the opposite order, inner axes first, sums in this one.
std::vector<Stage> gather_stages(const PlacedTensor& tensor, const ComputeSharding& form);
std::vector<Stage> sum_stages(const PlacedTensor& tensor,
                              const ComputeSharding& form);  // of the gradient, scattered as stored
// By coordinates in the mesh; stages.size() for the device itself.
size_t stage_of(std::span<const Stage> stages, std::span<const int> own, std::span<const int> other);

// Axes along which devices have parts of the sum that the gradient is, or of the tensor's working form.
AxisSet contributing(const PlacedTensor& tensor, const ComputeSharding& form);
// Devices that differ from this one along `axes` at most, ascending.
std::vector<int> group_of(const Mesh& mesh, int device, AxisSet axes);

}  // namespace mw::mesh
