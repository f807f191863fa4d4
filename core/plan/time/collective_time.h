// SPDX-License-Identifier: Apache-2.0
// Seconds of a collective on the links it runs over: measured curves where the catalogue has them, else bandwidth and
// latency ("How to Scale Your Model", jax-ml/scaling-book). Any thread.
#pragma once
#include "core/mesh/collectives/collectives.h"
#include "core/plan/request/request.h"

namespace mw::plan {

// One call. The interval is that of the link share; none for a measured curve.
Estimate collective_seconds(const mesh::Collective& collective, const mesh::Layout& layout,
                            const hardware::Target& target, const Efficiencies& efficiencies);
// Bytes per second of the curve at this payload, on a line between the points in logarithms; below the first point the
// time stays that of the first.
double bandwidth_at(const hardware::BandwidthCurve& curve, double payload);

}  // namespace mw::plan
