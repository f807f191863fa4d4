// SPDX-License-Identifier: Apache-2.0
#include "core/views/step_snapshot.h"

#include <algorithm>
#include <cmath>

namespace mw::views {
namespace {

// Returns the point with the largest total of the step nearest to `step`.
std::optional<size_t> peak_of_step(const MemoryTimeline& memory, double step) {
  const auto near = memory.total_by_step.nearest(step);
  if (!near) return std::nullopt;
  const double x = memory.total_by_step[*near].x;
  const auto [begin, end] = memory.total_by_step.window(x, x);
  return memory.total_by_step.max_index(begin, end);
}

std::optional<size_t> memory_at(const MemoryTimeline& memory, const Playhead& at) {
  if (at.time_s) return memory.total_by_time.nearest(*at.time_s);
  return at.step ? peak_of_step(memory, *at.step) : std::nullopt;
}

// Returns the last point at or before the step, else the first point.
const TrafficPoint* traffic_at(const TrafficTimeline& traffic, long step) {
  if (traffic.empty()) return nullptr;
  const auto after = std::upper_bound(traffic.points.begin(), traffic.points.end(), step,
                                      [](long s, const TrafficPoint& p) { return s < p.step; });
  return after == traffic.points.begin() ? &traffic.points.front() : &*std::prev(after);
}

void read_memory(const RunView& view, const Playhead& at, StepSnapshot& out) {
  for (const auto& [device, memory] : view.memory())
    if (const auto i = memory_at(memory, at)) {
      const MemoryPoint& p = memory.points[*i];
      out.devices.push_back(
          {.device = device, .bytes = p.bytes, .phase = p.phase, .predicted = view.predicted(device)});
      if (out.devices.size() == 1) out.time_s = p.time_s;
    }
}

void read_traffic(const RunView& view, StepSnapshot& out) {
  const TrafficPoint* p = traffic_at(view.traffic(), out.step);
  if (!p) return;
  out.has_traffic = true;
  out.axes = by_axis(view.traffic(), *p);
  out.traffic = sum(*p);
  for (DeviceSnapshot& d : out.devices)
    if (d.device >= 0 && static_cast<size_t>(d.device) < p->devices.size())
      d.sent = p->devices[static_cast<size_t>(d.device)];
}

}  // namespace

std::optional<double> metric_at(const RunView& view, const std::string& name, long step) {
  const MetricSeries* m = view.metric(name);
  if (!m || m->raw.empty()) return std::nullopt;
  const auto [begin, end] = m->raw.window(0, static_cast<double>(step));  // only values up to that step
  return end > begin && std::isfinite(m->raw[end - 1].y) ? std::optional(m->raw[end - 1].y) : std::nullopt;
}

bool DeviceSnapshot::beyond_prediction() const {
  constexpr double kAllowed = 1.02;
  return predicted &&
         static_cast<double>(bytes.total().value) > kAllowed * static_cast<double>(predicted->total().value);
}

StepSnapshot step_snapshot(const RunView& view, const Playhead& at) {
  StepSnapshot out;
  const double step = at.step     ? *at.step
                      : at.time_s ? step_of_time(view, *at.time_s).value_or(0)
                                  : static_cast<double>(view.step());
  out.step = std::lround(step);
  out.time_s = at.time_s.value_or(view.last_time());
  out.loss = metric_at(view, "train/loss", out.step);
  out.eval_loss = metric_at(view, "eval/loss", out.step);
  read_memory(view, at.time_s ? at : Playhead{static_cast<double>(out.step), {}}, out);
  read_traffic(view, out);
  return out;
}

std::optional<double> time_of_step(const RunView& view, double step) {
  if (view.memory().empty()) return std::nullopt;
  const MemoryTimeline& memory = view.memory().begin()->second;
  const auto i = peak_of_step(memory, step);
  return i ? std::optional(memory.points[*i].time_s) : std::nullopt;
}

std::optional<double> step_of_time(const RunView& view, double time_s) {
  if (view.memory().empty()) return std::nullopt;
  const MemoryTimeline& memory = view.memory().begin()->second;
  const auto i = memory.total_by_time.nearest(time_s);
  return i ? std::optional(static_cast<double>(memory.points[*i].step)) : std::nullopt;
}

std::optional<int> largest_device(const RunView& view) {
  const auto at = std::max_element(view.memory().begin(), view.memory().end(),
                                   [](const auto& a, const auto& b) { return a.second.peak < b.second.peak; });
  return at == view.memory().end() ? std::nullopt : std::optional(at->first);
}

std::string to_text(const StepSnapshot& m) {
  std::string out = "step " + std::to_string(m.step);
  if (m.loss) out += ": loss " + number_text(*m.loss, 4);
  const auto most = std::max_element(m.devices.begin(), m.devices.end(),
                                     [](const auto& a, const auto& b) { return a.bytes.total() < b.bytes.total(); });
  if (most != m.devices.end()) {
    out += m.devices.size() > 1 ? "; largest device " + std::to_string(most->device) + ", " : "; memory ";
    out += to_text(most->bytes.total()) + (most->phase.empty() ? "" : " (" + most->phase + ")");
  }
  if (m.has_traffic)
    out += "; moved " + to_text(Bytes(std::llround(std::min(m.traffic.bytes, 9e18)))) + " in " +
           to_text(Seconds(m.traffic.seconds)) + ", " + to_text(Seconds(m.traffic.waited)) + " of it waiting";
  return out;
}

}  // namespace mw::views
