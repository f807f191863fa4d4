// SPDX-License-Identifier: Apache-2.0
#include "core/views/design.h"

#include "core/mesh/collectives/engine_step.h"
#include "core/plan/time/collective_time.h"
#include "core/plan/time/step_time.h"
#include "core/train/run_settings.h"

namespace mw::views {

namespace {

// The engine takes a rank per module from its own options.
std::vector<mesh::AdapterShape> adapters_of(const experiment::Experiment& e, const plan::Request& r,
                                            const model::TensorInventory& inventory) {
  const bool here = r.stack == model::Stack::engine && r.method == model::TrainMethod::lora && !r.targets.empty();
  return here ? train::adapter_shapes(r.model, e.config().lora) : plan::adapter_shapes(r, inventory);
}

void set_collectives(Design& d, std::vector<mesh::Collective> list) {
  const plan::Request& r = d.request();
  d.collectives = std::move(list);
  d.seconds.clear();
  for (const mesh::Collective& c : d.collectives)
    d.seconds.push_back(plan::collective_seconds(c, d.layout, r.target, r.efficiencies));
}

mesh::EngineStep engine_step_of(const plan::Request& r) {
  return {.work = r.method == model::TrainMethod::full ? mesh::StepKind::train_full : mesh::StepKind::train_lora,
          .weight_bytes = model::bytes_of(r.weights),
          .recompute = r.train.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers};
}

}  // namespace

Design design(const experiment::Experiment& experiment, const plan::PlanContext& context) {
  Design d;
  d.experiment = experiment;
  d.planned = planning::plan_experiment(experiment, context);
  const plan::Request& r = d.planned.request;
  const auto use = r.work == plan::Work::train ? mesh::ShardingUse::training : mesh::ShardingUse::sampling;
  const model::TensorInventory inventory(r.model);
  d.placement = mesh::place(inventory, r.mesh, r.rules, adapters_of(experiment, r, inventory), use);
  d.layout = mesh::lay_out(r.mesh, r.target, r.places);
  const mesh::StepShape shape = plan::step_shape(plan::local_model(r, use));
  set_collectives(d, plan::step_collectives(r, r.model, d.placement, shape));
  return d;
}

bool is_here(const Design& design) {
  return design.request().target.chip.vendor == hardware::Vendor::cpu;
}

bool is_whole(const Design& design) {
  return !is_here(design) || planning::planned_elsewhere(design.experiment);
}

Design with_prediction(Design design, const planning::Prediction& p) {
  if (p.plan)
    design.planned.plan = *p.plan;
  else
    design.planned.plan.memory = planning::device_memory(p);
  const plan::Request& r = design.request();
  if (r.work != plan::Work::train || p.devices.size() < 2) return design;
  const planning::DevicePrediction& first = p.devices.front();
  const mesh::DeviceTokens own{.tokens = first.tokens, .loss_tokens = first.loss_tokens};
  const std::vector<mesh::DeviceTokens> micro(static_cast<size_t>(std::max(1, r.train.accumulation)), own);
  const mesh::DeviceCollectives planned(r.model, r.mesh, design.placement, engine_step_of(r));
  set_collectives(design, planned.of(0, micro));
  return design;
}

}  // namespace mw::views
