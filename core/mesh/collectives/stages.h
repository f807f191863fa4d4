// SPDX-License-Identifier: Apache-2.0
// The collectives, one per mesh axis, that gather a stored tensor for the computation and reduce its gradient.
// collectives() lists them, and the engine attributes each read from a peer to one of them. Plain values; any thread.
#pragma once
#include <span>
#include <vector>

#include "core/mesh/collectives/compute_sharding.h"

namespace mw::mesh {

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
