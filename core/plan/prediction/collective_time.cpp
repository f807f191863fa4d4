// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/collective_time.h"

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
  if (collective.kind == mesh::CollectiveKind::all_to_all) return nullptr;
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

// Members of the axis in a node.
double members_in_node(const mesh::AxisPlacement& place, const mesh::Layout& layout) {
  double members = 1;
  for (const mesh::GridPart& part : place.parts)
    if (layout.grid[static_cast<size_t>(part.dimension)].medium == mesh::Medium::node) members *= part.size;
  return members;
}

// Bytes per second that a device sends to its neighbours along the axis. Between nodes, the rings of a collective leave
// a node through the network interfaces of all its members there (NCCL's rail-aligned rings): each member's traffic is
// spread over them, up to the bandwidth within the node.
double link_rate(const mesh::AxisPlacement& place, const mesh::Layout& layout, const hardware::Chip& chip) {
  if (place.medium != mesh::Medium::network || !chip.egress)
    return chip.link_bandwidth.value * place.rails / std::max(1, place.sharing);
  const double in_node = members_in_node(place, layout);
  return in_node > 1 ? std::min(chip.link_bandwidth.value, chip.egress.value * in_node) : chip.egress.value;
}

// The slices of an axis that lies on links within them, too; else 0.
int slices_of(const mesh::AxisPlacement& place, const mesh::Layout& layout) {
  int slices = 1;
  bool has_links = false;
  for (const mesh::GridPart& part : place.parts) {
    const mesh::Medium medium = layout.grid[static_cast<size_t>(part.dimension)].medium;
    if (medium == mesh::Medium::network) slices *= part.size;
    has_links = has_links || medium == mesh::Medium::link;
  }
  return has_links && slices > 1 ? slices : 0;
}

// The share of the bytes sent along such an axis that goes to other slices: each device exchanges its shard with those
// at its place in the other slices, then the slices gather over their links.
double share_between(int slices, const mesh::AxisPlacement& place) {
  return (slices - 1.0) / (place.size - 1.0);
}

// The links of a collective, and its measured curve if the catalogue has one for them.
struct Route {
  const mesh::AxisPlacement* place = nullptr;  // null: nothing is sent
  const hardware::BandwidthCurve* curve = nullptr;
  double link = 0;  // bytes per second
  // For an axis over several TPU slices: the rate of the links within them, and the share sent between them.
  double in_slice = 0;       // bytes per second
  double network_share = 1;  // of the bytes sent
  double crossings = 1;      // of links by each byte
};

// In an all-to-all on a torus a byte goes a quarter of the way round each of the axis's dimensions on average; through
// a switch it crosses one link.
double crossings_of(const mesh::AxisPlacement& place, const mesh::Layout& layout) {
  double sides = 0;
  for (const mesh::GridPart& part : place.parts)
    if (layout.grid[static_cast<size_t>(part.dimension)].medium == mesh::Medium::link) sides += part.size;
  return std::max(1.0, sides / 4);
}
Route route_of(const mesh::Collective& collective, const mesh::Layout& layout, const hardware::Chip& chip) {
  const mesh::AxisPlacement* place = place_of(layout, collective.axis);
  if (!place || collective.group <= 1 || collective.moved.value <= 0 || place->medium == mesh::Medium::none) return {};
  const bool near = place->medium == mesh::Medium::link || place->medium == mesh::Medium::chip;
  Route route{place, near ? nullptr : curve_of(collective, *place, chip), link_rate(*place, layout, chip)};
  if (collective.kind == mesh::CollectiveKind::all_to_all) route.crossings = crossings_of(*place, layout);
  if (const int slices = slices_of(*place, layout); slices > 0 && chip.egress) {
    route.in_slice = chip.link_bandwidth.value * place->rails / std::max(1, place->sharing);
    route.network_share = share_between(slices, *place);
  }
  return route;
}

double link_seconds(const mesh::Collective& collective, const Route& route, const hardware::Chip& chip, double share) {
  // Virtual devices wait once for all others, and not at all to read weights from their memory.
  const bool is_virtual = chip.vendor == hardware::Vendor::cpu;
  const int waits = !is_virtual                                      ? std::max(1, route.place->hops)
                    : collective.cause == mesh::Cause::gather_shards ? 0
                                                                     : 1;
  const double bytes = static_cast<double>(collective.moved.value) * route.crossings,
               latency = chip.link_latency.value * waits;
  if (route.link <= 0) return 0;
  if (route.in_slice <= 0) return bytes / (route.link * share) + latency;
  return bytes * route.network_share / (route.link * share) +
         bytes * (1 - route.network_share) / (route.in_slice * share) + latency;
}

// A curve counts bus bandwidth, so that the latency of its calls is scaled like their bytes.
double curve_seconds(const mesh::Collective& collective, const Route& route, const hardware::Chip& chip) {
  const auto moved = static_cast<double>(collective.moved.value), full = static_cast<double>(collective.full.value);
  return moved / bandwidth_at(*route.curve, full, chip.link_latency.value * full / moved);
}

const char* formula_of(const Route& route) {
  if (route.in_slice > 0)
    return "bytes sent between slices / (network x share) + bytes sent within them / (link x rails / sharing x share) "
           "+ "
           "hops x latency";
  return route.place->medium == mesh::Medium::network
             ? "bytes sent / (network interfaces of the group's members in a node x share) + latency"
             : "bytes sent / (link x rails / sharing x share) + hops x latency";
}

// A curve between nodes was measured with whole nodes; fewer members have fewer network interfaces.
bool follows_links(const Route& route, double linked, double measured) {
  return route.place->medium == mesh::Medium::network && linked > measured;
}

}  // namespace

double network_bytes(const mesh::Collective& collective, const mesh::Layout& layout) {
  const mesh::AxisPlacement* place = place_of(layout, collective.axis);
  if (!place || collective.group <= 1 || place->medium != mesh::Medium::network) return 0;
  const auto moved = static_cast<double>(collective.moved.value);
  const int slices = slices_of(*place, layout);
  return slices > 0 ? moved * share_between(slices, *place) : moved / members_in_node(*place, layout);
}

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

double collective_value(const mesh::Collective& collective, const mesh::Layout& layout, const hardware::Target& target,
                        const Efficiencies& efficiencies) {
  const Route route = route_of(collective, layout, target.chip);
  if (!route.place) return 0;
  const double linked = link_seconds(collective, route, target.chip, efficiencies.collectives.value);
  if (!route.curve) return linked;
  const double measured = curve_seconds(collective, route, target.chip);
  return follows_links(route, linked, measured) ? linked : measured;
}

Estimate collective_seconds(const mesh::Collective& collective, const mesh::Layout& layout,
                            const hardware::Target& target, const Efficiencies& efficiencies) {
  const Route route = route_of(collective, layout, target.chip);
  if (!route.place) return {};
  const Efficiency& share = efficiencies.collectives;
  const double linked = link_seconds(collective, route, target.chip, share.value);
  const double measured = route.curve ? curve_seconds(collective, route, target.chip) : 0;
  if (!route.curve || follows_links(route, linked, measured))
    return {.value = linked,
            .low = link_seconds(collective, route, target.chip, share.high),
            .high = link_seconds(collective, route, target.chip, share.low),
            .origin = share.origin,
            .formula = formula_of(route),
            .source = share.source};
  return {.value = measured,
          .low = measured,
          .high = measured,
          .origin = route.curve->chips == collective.group ? Origin::interpolated : Origin::transferred,
          .formula = "bytes sent / bus bandwidth measured at this payload",
          .source = route.curve->source};
}

namespace {

constexpr std::int64_t kFew = 64, kMany = 1 << 20, kBetween = 4097;

Bytes line(Bytes few, Bytes many, std::int64_t count) {
  const double share = static_cast<double>(count - kFew) / static_cast<double>(kMany - kFew);
  const auto a = static_cast<double>(few.value), b = static_cast<double>(many.value);
  return Bytes(std::llround(a + (b - a) * share));
}

bool same_but_bytes(const mesh::Collective& a, const mesh::Collective& b) {
  return a.kind == b.kind && a.axis == b.axis && a.group == b.group && a.cause == b.cause && a.layer == b.layer &&
         a.calls == b.calls;
}

}  // namespace

StepCollectives::StepCollectives(List list)
    : list_(std::move(list)), small_(list_(kFew)), large_(list_(kMany)), current_(small_) {
  is_linear_ = small_.size() == large_.size();
  for (const std::int64_t count : {std::int64_t{1}, kBetween}) {
    const std::vector<mesh::Collective> listed = list_(count);
    is_linear_ = is_linear_ && listed.size() == small_.size();
    if (!is_linear_) return;
    of(count);
    for (size_t i = 0; i < listed.size(); ++i)
      is_linear_ = is_linear_ && same_but_bytes(listed[i], small_[i]) && same_but_bytes(listed[i], large_[i]) &&
                   std::llabs(listed[i].full.value - current_[i].full.value) <= 1 &&
                   std::llabs(listed[i].moved.value - current_[i].moved.value) <= 1;
  }
}

const std::vector<mesh::Collective>& StepCollectives::of(std::int64_t count) {
  if (!is_linear_) return current_ = list_(count);
  for (size_t i = 0; i < current_.size(); ++i) {
    current_[i].full = line(small_[i].full, large_[i].full, count);
    current_[i].moved = line(small_[i].moved, large_[i].moved, count);
  }
  return current_;
}

}  // namespace mw::plan
