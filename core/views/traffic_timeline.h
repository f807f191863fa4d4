// SPDX-License-Identifier: Apache-2.0
// What the devices of a run sent each other, step by step, as the fabric counted it, beside what was planned for that
// step. For the chart of collectives and the mesh at a step. Plain values of one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/event.h"
#include "core/views/series.h"

namespace mw::views {

// What flows are told apart by; those of all layers are one.
struct TrafficKind {
  std::string kind, axis, phase, cause;  // as in event::Traffic::Entry, the cause as short as a legend needs it
  bool operator==(const TrafficKind&) const = default;
};
struct TrafficTotals {
  std::uint32_t kind = 0;           // index of TrafficTimeline::kinds
  std::int64_t calls = 0;           // of each device
  double bytes = 0;                 // sent by all devices together
  double seconds = 0;               // mean of the devices, waiting for each other included
  double waited = 0;                // of those
  std::optional<double> planned{};  // what `bytes` should be; empty where the record does not say
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
  std::vector<TrafficTotals> flows;    // each kind once
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
  std::vector<TrafficKind> kinds;                         // in order of their first appearance
  std::vector<TrafficPoint> points;                       // by step, ascending
  Series bytes_by_step, seconds_by_step, waited_by_step;  // totals; sample i is points[i]

  bool empty() const { return points.empty(); }
  void append(double time_s, const event::Traffic& event);  // replaces what was from its step on
  void drop_after(long step);

  // What a chart stacks: one layer per name. Seconds leave out waiting, which is the last layer, "waiting".
  std::vector<std::string> layers(TrafficBy by, TrafficAmount amount) const;
  std::vector<double> split(size_t point, TrafficBy by, TrafficAmount amount) const;
  const Series& total(TrafficAmount amount) const {
    return amount == TrafficAmount::bytes ? bytes_by_step : seconds_by_step;
  }

  bool operator==(const TrafficTimeline&) const = default;

 private:
  std::uint32_t index_of(TrafficKind kind);  // adds it where it is new
};

// Of a step, in order of the axes' first appearance in the run.
std::vector<AxisTraffic> by_axis(const TrafficTimeline& timeline, const TrafficPoint& point);
TrafficTotals sum(const TrafficPoint& point);

}  // namespace mw::views
