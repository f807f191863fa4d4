// SPDX-License-Identifier: Apache-2.0
// The traffic between the devices of a cluster in a step, measured and planned, as an event. Use on one thread, between
// steps.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "core/base/event.h"
#include "core/data/dataset/batches.h"
#include "core/engine/distributed/cluster.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/train/settings.h"

namespace mw::train {

// The planned collectives of the steps of a run on a mesh.
class TrafficPlan {
 public:
  // `cluster` must have its adapters and outlive the object. Without a mesh, nothing is planned.
  TrafficPlan(const engine::Cluster& cluster, const Settings& settings);
  // The tokens of a device in these micro-batches, and its collectives in a step.
  std::vector<mesh::DeviceTokens> own(std::span<const data::Batch> micro, int device) const;
  std::vector<mesh::Collective> collectives(std::span<const mesh::DeviceTokens> own, int device) const;

 private:
  const engine::Cluster& cluster_;
  int loss_chunk_;
  mesh::EngineStep step_;
  std::optional<mesh::DeviceCollectives> planned_;
  std::vector<std::int64_t> logit_row_bytes_;  // per device, for its part of the vocabulary
};

// Traffic since the last clear_traffic() of the cluster, summed over tensors, with the planned bytes for the step's
// micro-batches.
event::StepTraffic traffic_of(const engine::Cluster& cluster, long step, const TrafficPlan& plan,
                              std::span<const data::Batch> micro);

}  // namespace mw::train
