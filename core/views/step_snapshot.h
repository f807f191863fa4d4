// SPDX-License-Identifier: Apache-2.0
// One playhead for everything that is drawn of a run: what each chart and the mesh say at one step or one instant.
// Plain values; any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/views/run_view.h"

namespace mw::views {

// Nothing: the newest. A step: its end, memory at its largest. A time: memory at that instant, the step it lies in.
struct Playhead {
  std::optional<double> step, time_s;
  bool live() const { return !step && !time_s; }
};

struct DeviceSnapshot {
  int device = 0;
  Ledger bytes;
  std::string phase;
  std::optional<DeviceTraffic> sent{};  // in the step
  std::optional<Ledger> predicted{};    // its peak of the whole run
  bool beyond_prediction() const;       // by more than what a proof allows
};
struct StepSnapshot {
  long step = 0;
  double time_s = 0;
  std::optional<double> loss, eval_loss;
  std::vector<DeviceSnapshot> devices;  // those that reported memory
  std::vector<AxisTraffic> axes;        // of the step; empty on one device
  TrafficTotals traffic;                // all of it
  bool has_traffic = false;
};
StepSnapshot step_snapshot(const RunView& view, const Playhead& at);

// Where the memory timeline, which runs over time, stands at a step and the other way round. Empty without memory.
std::optional<double> time_of_step(const RunView& view, double step);
std::optional<double> step_of_time(const RunView& view, double time_s);

// The device whose reported peak is largest, the first of equals; empty without memory.
std::optional<int> largest_device(const RunView& view);

// "step 12: loss 2.41; largest device 3, 12.3 MiB (backward); moved 4.1 MiB in 12 ms, 3.1 ms of it waiting"
std::string to_text(const StepSnapshot& snapshot);

}  // namespace mw::views
