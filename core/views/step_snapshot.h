// SPDX-License-Identifier: Apache-2.0
// State of a run at one step or time, shared by all charts and the mesh of the Train page. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/views/run_view.h"

namespace mw::views {

// Position to read. None set: the latest state. `step`: the end of that step, with its largest memory. `time_s`: the
// memory at that time and the step that contains it.
struct Playhead {
  std::optional<double> step, time_s;
  bool live() const { return !step && !time_s; }
};

struct DeviceSnapshot {
  int device = 0;
  Ledger bytes;
  std::string phase;
  std::optional<DeviceTraffic> sent{};  // traffic of the step
  std::optional<Ledger> predicted{};    // predicted peak of the run
  bool beyond_prediction() const;       // whether the total exceeds the prediction by more than a proof allows
};
struct StepSnapshot {
  long step = 0;
  double time_s = 0;
  std::optional<double> loss, eval_loss;
  std::vector<DeviceSnapshot> devices;  // devices that reported memory
  std::vector<AxisTraffic> axes;        // traffic of the step; empty on one device
  TrafficTotals traffic;                // of all axes
  bool has_traffic = false;
};
StepSnapshot step_snapshot(const RunView& view, const Playhead& at);

// The last value of a metric up to a step; empty if there is none.
std::optional<double> metric_at(const RunView& view, const std::string& name, long step);

// Convert between steps and the time axis of the memory timeline. Empty without memory events.
std::optional<double> time_of_step(const RunView& view, double step);
std::optional<double> step_of_time(const RunView& view, double time_s);

// Returns the device with the largest reported peak, the first of equals; empty without memory events.
std::optional<int> largest_device(const RunView& view);

// "step 12: loss 2.41; largest device 3, 12.3 MiB (backward); moved 4.1 MiB in 12 ms, 3.1 ms of it waiting"
std::string to_text(const StepSnapshot& snapshot);

}  // namespace mw::views
