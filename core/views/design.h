// SPDX-License-Identifier: Apache-2.0
// One experiment on its target, designed: where every tensor lies, what moves, what it needs and costs, what is wrong.
// Predicted values, never measured ones. Any thread.
#pragma once
#include <memory>
#include <vector>

#include "core/mesh/collectives/collectives.h"
#include "core/planning/planning.h"
#include "core/planning/predict.h"

namespace mw::views {

struct Design {
  experiment::Experiment experiment;  // that was designed
  planning::ExperimentPlan planned;
  mesh::Layout layout;
  mesh::Placement placement;                  // of every layer
  std::vector<mesh::Collective> collectives;  // of one step; here: of the first device, its largest micro-batches
  std::vector<plan::Estimate> seconds;        // of one call of each
  const plan::Request& request() const { return planned.request; }
  const plan::Plan& plan() const { return planned.plan; }
};
using DesignPtr = std::shared_ptr<const Design>;

// Throws Error for what makes a design impossible (unknown target, mesh unlike the chips, no model).
Design design(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue);

bool is_here(const Design& design);  // on this machine: the engine runs it
// Complete as it is: nothing follows from the engine's prediction of a run.
bool is_whole(const Design& design);
// Its time can be told: of another machine, or of this one once its runs calibrated it.
bool speed_known(const Design& design);
// A design for this machine with the engine's own prediction in place of the planner's: its memory is known exactly,
// and its speed is measured rather than planned.
Design with_prediction(Design design, const planning::Prediction& prediction);

}  // namespace mw::views
