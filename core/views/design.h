// SPDX-License-Identifier: Apache-2.0
// The design of an experiment on its target: placement of tensors, collectives, memory, time, cost and problems. All
// values are predicted. Thread-safe.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/mesh/collectives/collectives.h"
#include "core/mesh/layout/mesh.h"
#include "core/plan/experiment/experiment_plan.h"

namespace mw::views {

struct Design {
  experiment::Experiment experiment;  // input of the design
  plan::ExperimentPlan planned;
  mesh::Layout layout;
  mesh::Placement placement;                  // of every layer
  std::vector<mesh::Collective> collectives;  // of one step; on this machine, of device 0 at its largest micro-batches
  std::vector<plan::Estimate> seconds;        // of one call of each collective
  const plan::Request& request() const { return planned.request; }
  const plan::Plan& plan() const { return planned.plan; }
};
using DesignPtr = std::shared_ptr<const Design>;

// Throws Error for an unknown target, a mesh that does not match the chips, or a missing model.
Design design(const experiment::Experiment& experiment, const plan::PlanContext& context,
              plan::ReadData read_data = plan::ReadData::yes, const std::stop_token& stop = {});

// Positions of virtual devices on a plane, for drawing a run, derived from their mesh coordinates. Thread-safe.
struct GridDevice {
  int device = 0;  // row-major index in the mesh
  int column = 0, row = 0;
  std::string name;  // "fsdp 1, tp 0"; omits axes of size 1
};
struct DeviceEdge {  // neighbours along an axis
  int a = 0, b = 0;
  int axis = 0;  // of the mesh
};
struct DeviceGrid {
  int columns = 1, rows = 1;
  std::vector<GridDevice> devices;  // by device
  std::vector<DeviceEdge> edges;
};
// Places the last axis of more than one device horizontally and the one before it vertically; earlier axes alternate
// and repeat the blocks of the later ones.
DeviceGrid device_grid(const mesh::Mesh& mesh);

}  // namespace mw::views
