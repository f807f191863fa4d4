// SPDX-License-Identifier: Apache-2.0
// Seconds of a collective on its links: from measured curves if the catalogue has them, else from bandwidth and
// latency ("How to Scale Your Model", jax-ml/scaling-book). Any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/mesh/collectives/collectives.h"
#include "core/plan/request/request.h"

namespace mw::plan {

// The seconds of one call. The interval follows from the efficiency of the links; a measured curve has none.
Estimate collective_seconds(const mesh::Collective& collective, const mesh::Layout& layout,
                            const hardware::Target& target, const Efficiencies& efficiencies);
// collective_seconds().value, without text.
double collective_value(const mesh::Collective& collective, const mesh::Layout& layout, const hardware::Target& target,
                        const Efficiencies& efficiencies);
// The bytes that a device sends to other slices or nodes in one call, on average over those of its group.
double network_bytes(const mesh::Collective& collective, const mesh::Layout& layout);
// Bytes per second of the curve at a payload in bytes, interpolated linearly in logarithms. Below the first point the
// time of a payload falls linearly towards `latency` (s), or stays constant if the first point takes no longer.
double bandwidth_at(const hardware::BandwidthCurve& curve, double payload, double latency);

// The collectives of a server's step for any number of tokens. Listing them is slow, but their bytes are linear in the
// number of tokens, so that two lists are enough. Not thread-safe.
class StepCollectives {
 public:
  using List = std::function<std::vector<mesh::Collective>(std::int64_t count)>;
  explicit StepCollectives(List list);
  // Equal to `list(count)`; calls it again if the bytes are not linear (padded shards, different steps).
  const std::vector<mesh::Collective>& of(std::int64_t count);

 private:
  List list_;
  std::vector<mesh::Collective> small_, large_;
  bool is_linear_ = false;
  std::vector<mesh::Collective> current_;
};

}  // namespace mw::plan
