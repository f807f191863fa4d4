// SPDX-License-Identifier: Apache-2.0
// What a cluster's devices sent to each other in a step, beside what they should have, as an event. One thread, between
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

// The collectives that the planner lists for the steps of a run on a mesh.
class TrafficPlan {
 public:
  // The cluster, with its adapters, outlives it. One device: nothing is listed.
  TrafficPlan(const engine::Cluster& cluster, const Settings& settings);
  // What a device has of these micro-batches, and all its collectives of a step of them.
  std::vector<mesh::DeviceTokens> own(std::span<const data::Batch> micro, int device) const;
  std::vector<mesh::Collective> collectives(std::span<const mesh::DeviceTokens> own, int device) const;

 private:
  const engine::Cluster& cluster_;
  int loss_chunk_;
  mesh::EngineStep step_;
  std::optional<mesh::DeviceCollectives> planned_;
  std::vector<std::int64_t> logit_row_bytes_;  // of each device's part of the vocabulary
};

// Everything since the cluster's clear_traffic(), the collectives of several tensors for one purpose together, and what
// the plan says of the step's micro-batches.
event::Traffic traffic_of(const engine::Cluster& cluster, long step, const TrafficPlan& plan,
                          std::span<const data::Batch> micro);

}  // namespace mw::train
