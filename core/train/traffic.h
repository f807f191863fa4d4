// SPDX-License-Identifier: Apache-2.0
// What a cluster's devices sent to each other in a step, as an event. One thread, between steps.
#pragma once
#include "core/base/event.h"
#include "core/engine/cluster.h"

namespace mw::train {

// Everything since the cluster's clear_traffic(), the collectives of several tensors for one purpose together.
event::Traffic traffic_of(const engine::Cluster& cluster, long step);

}  // namespace mw::train
