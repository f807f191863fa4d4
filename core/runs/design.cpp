// SPDX-License-Identifier: Apache-2.0
#include "core/runs/design.h"

#include "core/plan/collective_time.h"
#include "core/plan/step_time.h"

namespace mw::runs {

Design design(const Experiment& experiment, const hardware::Catalogue& catalogue) {
  Design d;
  d.planned = plan_experiment(experiment, catalogue);
  const plan::Request& r = d.planned.request;
  const auto use = r.work == plan::Work::train ? mesh::Use::training : mesh::Use::sampling;
  const model::TensorInventory inventory(r.model);
  d.placement = mesh::place(inventory, r.mesh, r.rules, plan::adapter_shapes(r, inventory), use);
  d.layout = mesh::lay_out(r.mesh, r.target, r.places);
  const mesh::StepShape shape = plan::step_shape(plan::local_model(r, use));
  d.collectives = plan::step_collectives(r, r.model, d.placement, shape);
  for (const mesh::Collective& c : d.collectives)
    d.seconds.push_back(plan::collective_seconds(c, d.layout, r.target, r.efficiencies));
  return d;
}

}  // namespace mw::runs
