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

Estimate over_links(const mesh::Collective& collective, const mesh::AxisPlacement& place, const hardware::Chip& chip,
                    const Efficiency& share) {
  const bool network = place.medium == mesh::Medium::network && chip.egress;
  const double link =
      network ? chip.egress.value : chip.link_bandwidth.value * place.rails / std::max(1, place.sharing);
  const double bytes = static_cast<double>(collective.moved.value),
               latency = chip.link_latency.value * std::max(1, place.hops);
  const auto seconds = [&](double s) { return link > 0 ? bytes / (link * s) + latency : 0; };
  return {.value = seconds(share.value),
          .low = seconds(share.high),
          .high = seconds(share.low),
          .origin = share.origin,
          .formula = "bytes sent / (link x rails / sharing x share) + hops x latency",
          .source = share.source};
}

}  // namespace

double bandwidth_at(const hardware::BandwidthCurve& curve, double payload) {
  const auto& p = curve.points;
  if (p.empty()) return 0;
  if (payload <= p.front().first) return p.front().second * payload / p.front().first;
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
  if (!curve) return over_links(collective, *place, target.chip, efficiencies.collectives);
  const double seconds =
      static_cast<double>(collective.moved.value) / bandwidth_at(*curve, static_cast<double>(collective.full.value));
  return {.value = seconds,
          .low = seconds,
          .high = seconds,
          .origin = curve->chips == collective.group ? Origin::interpolated : Origin::transferred,
          .formula = "bytes sent / bus bandwidth measured at this payload",
          .source = curve->source};
}

}  // namespace mw::plan
