// SPDX-License-Identifier: Apache-2.0
// Measured and planned traffic between the devices of a run, by step. Not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/event.h"
#include "core/views/series.h"

namespace mw::views {

// Key by which traffic is summed over all layers.
struct TrafficKind {
  std::string kind, axis, phase, cause;  // as in event::StepTraffic::Entry; `cause` is shortened for legends
  bool operator==(const TrafficKind&) const = default;
};
struct TrafficTotals {
  std::uint32_t kind = 0;           // index of TrafficTimeline::kinds
  std::int64_t calls = 0;           // per device
  double bytes = 0;                 // sent by all devices together
  double seconds = 0;               // mean over devices, including `waited`
  double waited = 0;                // seconds waiting for other devices
  std::optional<double> planned{};  // planned value of `bytes`; empty if not recorded
  bool as_planned() const { return !planned || *planned == bytes; }
  bool operator==(const TrafficTotals&) const = default;
};
struct DeviceTraffic {
  double bytes = 0, seconds = 0, waited = 0;
  bool operator==(const DeviceTraffic&) const = default;
};
struct TrafficPoint {
  double time_s = 0;
  long step = 0;
  std::vector<TrafficTotals> flows;    // one per kind
  std::vector<DeviceTraffic> devices;  // by device
  bool operator==(const TrafficPoint&) const = default;
};

enum class TrafficBy { kind, cause, axis };
enum class TrafficAmount { bytes, seconds };

struct AxisTraffic {
  std::string axis;
  TrafficTotals sum;
  bool operator==(const AxisTraffic&) const = default;
};

struct TrafficTimeline {
  std::vector<TrafficKind> kinds;         // in order of their first appearance
  std::vector<TrafficPoint> points;       // by step, ascending
  Series bytes_by_step, seconds_by_step;  // totals; sample i is points[i]

  bool empty() const { return points.empty(); }
  void append(double time_s, const event::StepTraffic& event);  // replaces all points from its step on
  void drop_after(long step);

  // Layers of a stacked chart and their values at a point. Seconds exclude waiting, which is the last layer, "waiting".
  std::vector<std::string> layers(TrafficBy by, TrafficAmount amount) const;
  std::vector<double> split(size_t point, TrafficBy by, TrafficAmount amount) const;
  const Series& total(TrafficAmount amount) const {
    return amount == TrafficAmount::bytes ? bytes_by_step : seconds_by_step;
  }

  bool operator==(const TrafficTimeline&) const = default;

 private:
  std::uint32_t index_of(TrafficKind kind);  // adds a new kind
};

// Returns the traffic of a step by axis, in order of the axes' first appearance in the run.
std::vector<AxisTraffic> by_axis(const TrafficTimeline& timeline, const TrafficPoint& point);
TrafficTotals sum(const TrafficPoint& point);

}  // namespace mw::views
