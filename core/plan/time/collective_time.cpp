// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/collective_time.h"

#include <algorithm>
#include <cmath>

namespace mw::plan {
namespace {

const mesh::AxisPlacement* place_of(const mesh::Layout& layout, const std::string& axis) {
  for (const mesh::AxisPlacement& p : layout.axes)
    if (p.axis == axis) return &p;
  return nullptr;
}

const hardware::BandwidthCurve* curve_of(const mesh::Collective& collective, const mesh::AxisPlacement& place,
                                         const hardware::Chip& chip) {
  const bool reduce = collective.kind == mesh::CollectiveKind::all_reduce;
  const hardware::BandwidthCurve* curve = nullptr;
  if (place.medium == mesh::Medium::network)
    curve = &chip.all_reduce_nodes;
  else if (!reduce)
    curve = &chip.all_gather;
  else
    curve = collective.group == 2 && !chip.all_reduce_pair.points.empty() ? &chip.all_reduce_pair : &chip.all_reduce;
  return curve->points.empty() ? nullptr : curve;
}

// Bytes per second that a device sends to its neighbours along the axis. Between nodes, the rings of a collective leave
// a node through the network interfaces of all its members there (NCCL's rail-aligned rings): each member's traffic is
// spread over them, up to the bandwidth within the node.
double link_rate(const mesh::AxisPlacement& place, const mesh::Layout& layout, const hardware::Chip& chip) {
  if (place.medium != mesh::Medium::network || !chip.egress)
    return chip.link_bandwidth.value * place.rails / std::max(1, place.sharing);
  double in_node = 1;
  for (const mesh::GridPart& part : place.parts)
    if (layout.grid[static_cast<size_t>(part.dimension)].medium == mesh::Medium::node) in_node *= part.size;
  return in_node > 1 ? std::min(chip.link_bandwidth.value, chip.egress.value * in_node) : chip.egress.value;
}

Estimate over_links(const mesh::Collective& collective, const mesh::AxisPlacement& place, double link,
                    const hardware::Chip& chip, const Efficiency& share) {
  const double bytes = static_cast<double>(collective.moved.value),
               latency = chip.link_latency.value * std::max(1, place.hops);
  const auto seconds = [&](double s) { return link > 0 ? bytes / (link * s) + latency : 0; };
  return {.value = seconds(share.value),
          .low = seconds(share.high),
          .high = seconds(share.low),
          .origin = share.origin,
          .formula = place.medium == mesh::Medium::network
                         ? "bytes sent / (network interfaces of the group's members in a node x share) + latency"
                         : "bytes sent / (link x rails / sharing x share) + hops x latency",
          .source = share.source};
}

}  // namespace

double bandwidth_at(const hardware::BandwidthCurve& curve, double payload, double latency) {
  const auto& p = curve.points;
  if (p.empty()) return 0;
  if (payload <= p.front().first) {
    // The first point's time, less what its payload takes beyond the latency.
    const double first = p.front().first / p.front().second, fixed = std::min(latency, first);
    return payload > 0 ? payload / (fixed + (first - fixed) * payload / p.front().first) : 0;
  }
  for (size_t i = 1; i < p.size(); ++i) {
    if (payload > p[i].first) continue;
    const double t = std::log(payload / p[i - 1].first) / std::log(p[i].first / p[i - 1].first);
    return p[i - 1].second * std::pow(p[i].second / p[i - 1].second, t);
  }
  return p.back().second;
}

Estimate collective_seconds(const mesh::Collective& collective, const mesh::Layout& layout,
                            const hardware::Target& target, const Efficiencies& efficiencies) {
  const mesh::AxisPlacement* place = place_of(layout, collective.axis);
  if (!place || collective.group <= 1 || collective.moved.value <= 0 || place->medium == mesh::Medium::none) return {};
  const hardware::BandwidthCurve* curve = place->medium == mesh::Medium::link || place->medium == mesh::Medium::chip
                                              ? nullptr
                                              : curve_of(collective, *place, target.chip);
  const double link = link_rate(*place, layout, target.chip);
  const Estimate linked = over_links(collective, *place, link, target.chip, efficiencies.collectives);
  if (!curve) return linked;
  // A curve counts bus bandwidth, so that the latency of its calls is scaled like their bytes.
  const auto moved = static_cast<double>(collective.moved.value), full = static_cast<double>(collective.full.value);
  const double latency = target.chip.link_latency.value * full / moved;
  const double seconds = moved / bandwidth_at(*curve, full, latency);
  // A curve between nodes was measured with whole nodes; fewer members have fewer network interfaces.
  if (place->medium == mesh::Medium::network && linked.value > seconds) return linked;
  return {.value = seconds,
          .low = seconds,
          .high = seconds,
          .origin = curve->chips == collective.group ? Origin::interpolated : Origin::transferred,
          .formula = "bytes sent / bus bandwidth measured at this payload",
          .source = curve->source};
}

}  // namespace mw::plan
