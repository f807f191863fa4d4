// SPDX-License-Identifier: Apache-2.0
#include "core/views/traffic_timeline.h"

#include <algorithm>
#include <cmath>

#include "core/mesh/collectives/collectives.h"

namespace mw::views {
namespace {

// Shortens the planner's causes for legends; keeps other texts.
std::string short_cause(const std::string& cause) {
  using mesh::Cause;
  for (const auto& [known, label] :
       {std::pair{Cause::gather_shards, "weights gathered"}, std::pair{Cause::inefficient_spec, "extra resharding"},
        std::pair{Cause::partial_sums, "partial sums"}, std::pair{Cause::embedding_rows, "embedding rows"},
        std::pair{Cause::softmax, "softmax"}, std::pair{Cause::logits, "whole logits"},
        std::pair{Cause::gradients, "gradients"}})
    if (mesh::to_string(known) == cause) return label;
  return cause;
}

const std::string& name_of(const TrafficKind& kind, TrafficBy by) {
  return by == TrafficBy::kind ? kind.kind : by == TrafficBy::cause ? kind.cause : kind.axis;
}

std::vector<std::string> names(const std::vector<TrafficKind>& kinds, TrafficBy by) {
  std::vector<std::string> out;
  for (const TrafficKind& k : kinds)
    if (std::find(out.begin(), out.end(), name_of(k, by)) == out.end()) out.push_back(name_of(k, by));
  return out;
}

void add_to(TrafficTotals& sum, const TrafficTotals& part) {
  if (sum.planned && part.planned)
    *sum.planned += *part.planned;
  else
    sum.planned.reset();
  sum.calls += part.calls;
  sum.bytes += part.bytes;
  sum.seconds += part.seconds;
  sum.waited += part.waited;
}

// JSON has no NaN; negative values are invalid.
double amount_of(double v) {
  return std::isfinite(v) ? std::max(0.0, v) : 0.0;
}

TrafficTotals totals_of(const event::StepTraffic::Entry& e, std::uint32_t kind) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // limits unchecked numbers of a record
  return {kind,
          std::clamp<std::int64_t>(e.calls, 0, kMost),
          amount_of(static_cast<double>(e.bytes.value)),
          amount_of(e.seconds),
          amount_of(e.waited),
          e.planned ? std::optional(amount_of(static_cast<double>(e.planned->value))) : std::nullopt};
}

}  // namespace

std::uint32_t TrafficTimeline::index_of(TrafficKind kind) {
  const auto at = std::find(kinds.begin(), kinds.end(), kind);
  const auto index = static_cast<std::uint32_t>(at - kinds.begin());
  if (at == kinds.end()) kinds.push_back(std::move(kind));
  return index;
}

void TrafficTimeline::append(double time_s, const event::StepTraffic& e) {
  while (!points.empty() && points.back().step >= e.step) points.pop_back();
  drop_after(e.step);
  TrafficPoint point{.time_s = time_s, .step = e.step, .flows = {}, .devices = {}};
  for (const event::StepTraffic::Entry& entry : e.entries) {
    const auto kind = index_of({valid_utf8(entry.kind), valid_utf8(entry.axis), valid_utf8(entry.phase),
                                short_cause(valid_utf8(entry.cause))});
    const TrafficTotals flow = totals_of(entry, kind);
    const auto at =
        std::find_if(point.flows.begin(), point.flows.end(), [&](const TrafficTotals& f) { return f.kind == kind; });
    if (at == point.flows.end())
      point.flows.push_back(flow);
    else
      add_to(*at, flow);
  }
  for (const event::StepTraffic::Device& d : e.devices)
    point.devices.push_back({amount_of(static_cast<double>(d.bytes.value)), amount_of(d.seconds), amount_of(d.waited)});
  const auto x = static_cast<double>(e.step);
  const TrafficTotals all = sum(point);
  bytes_by_step.append(x, all.bytes);
  seconds_by_step.append(x, all.seconds);
  points.push_back(std::move(point));
}

// Also removes kinds that occur only in dropped steps.
void TrafficTimeline::drop_after(long step) {
  while (!points.empty() && points.back().step > step) points.pop_back();
  if (points.size() == bytes_by_step.size()) return;
  for (Series* s : {&bytes_by_step, &seconds_by_step}) s->truncate(points.size());
  size_t used = 0;
  for (const TrafficPoint& p : points)
    for (const TrafficTotals& f : p.flows) used = std::max<size_t>(used, f.kind + 1);
  kinds.resize(used);
}

std::vector<std::string> TrafficTimeline::layers(TrafficBy by, TrafficAmount amount) const {
  auto out = names(kinds, by);
  if (amount == TrafficAmount::seconds) out.emplace_back("waiting");
  return out;
}

std::vector<double> TrafficTimeline::split(size_t point, TrafficBy by, TrafficAmount amount) const {
  const auto layer_names = names(kinds, by);
  std::vector<size_t> layer_of;
  for (const TrafficKind& k : kinds)
    layer_of.push_back(
        static_cast<size_t>(std::find(layer_names.begin(), layer_names.end(), name_of(k, by)) - layer_names.begin()));
  std::vector<double> out(layer_names.size() + (amount == TrafficAmount::seconds ? 1 : 0));
  for (const TrafficTotals& f : points[point].flows) {
    double& value = out[layer_of[f.kind]];
    if (amount == TrafficAmount::bytes) {
      value += f.bytes;
      continue;
    }
    value += std::max(0.0, f.seconds - f.waited);
    out.back() += f.waited;
  }
  return out;
}

std::vector<AxisTraffic> by_axis(const TrafficTimeline& timeline, const TrafficPoint& point) {
  std::vector<AxisTraffic> out;
  for (const std::string& axis : names(timeline.kinds, TrafficBy::axis)) {
    AxisTraffic all{.axis = axis, .sum = {.planned = 0}};
    for (const TrafficTotals& f : point.flows)
      if (timeline.kinds[f.kind].axis == axis) add_to(all.sum, f);
    out.push_back(std::move(all));
  }
  return out;
}

TrafficTotals sum(const TrafficPoint& point) {
  TrafficTotals all{.planned = 0};
  for (const TrafficTotals& f : point.flows) add_to(all, f);
  return all;
}

}  // namespace mw::views
