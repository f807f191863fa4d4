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

// What the engine moves, of its first device.
std::vector<mesh::Collective> engine_collectives(const plan::Request& r, const mesh::Placement& placement,
                                                 const plan::EngineRows& rows) {
  const mesh::DeviceTokens own{.tokens = rows.real_tokens, .loss_tokens = rows.loss_tokens};
  const std::vector<mesh::DeviceTokens> micro(static_cast<size_t>(std::max(1, r.train.accumulation)), own);
  return mesh::DeviceCollectives(r.model, r.mesh, placement, engine_step_of(r)).of(0, micro);
}

}  // namespace

Design design(const experiment::Experiment& experiment, const plan::PlanContext& context, plan::ReadData read_data,
              const std::stop_token& stop) {
  Design d;
  d.experiment = experiment;
  d.planned = plan::plan_experiment(experiment, context, read_data, stop);
  const plan::Request& r = d.planned.request;
  const auto use = r.work == plan::Work::train ? mesh::ShardingUse::training : mesh::ShardingUse::sampling;
  const model::TensorInventory inventory(r.model);
  d.placement = mesh::place(inventory, r.mesh, r.rules, adapters_of(experiment, r, inventory), use);
  d.layout = mesh::lay_out(r.mesh, r.target, r.places);
  const std::vector<plan::DeviceUse>& devices = d.plan().memory.devices;
  set_collectives(d, devices.size() > 1 ? engine_collectives(r, d.placement, devices.front().rows)
                                        : plan::step_collectives(r, r.model, d.placement,
                                                                 plan::step_shape(plan::local_model(r, use))));
  return d;
}

namespace {

// Distance on the plane between neighbours along an axis.
struct Stride {
  int column = 0, row = 0;
};

std::vector<Stride> strides(const mesh::Mesh& mesh, DeviceGrid& grid) {
  std::vector<Stride> out(mesh.axes.size());
  bool across = true;
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    const int size = mesh.axes[i].size;
    if (size < 2) continue;
    int& extent = across ? grid.columns : grid.rows;
    (across ? out[i].column : out[i].row) = extent;
    extent *= size;
    across = !across;
  }
  return out;
}

std::string coordinate_text(const mesh::Mesh& mesh, const std::vector<int>& at) {
  std::string out;
  for (size_t i = 0; i < at.size(); ++i)
    if (mesh.axes[i].size > 1) out += (out.empty() ? "" : ", ") + mesh.axes[i].name + " " + std::to_string(at[i]);
  return out;
}

}  // namespace

DeviceGrid device_grid(const mesh::Mesh& mesh) {
  DeviceGrid grid;
  const auto stride = strides(mesh, grid);
  std::vector<int> step(mesh.axes.size(), 1);  // in devices, along each axis
  for (size_t i = mesh.axes.size(); i-- > 1;) step[i - 1] = step[i] * mesh.axes[i].size;
  for (int d = 0; d < mesh.devices(); ++d) {
    const auto at = mesh::coordinate(mesh, d);
    GridDevice device{.device = d, .name = coordinate_text(mesh, at)};
    for (size_t i = 0; i < at.size(); ++i) {
      device.column += at[i] * stride[i].column;
      device.row += at[i] * stride[i].row;
      if (at[i] + 1 < mesh.axes[i].size) grid.edges.push_back({d, d + step[i], static_cast<int>(i)});
    }
    grid.devices.push_back(std::move(device));
  }
  return grid;
}

}  // namespace mw::views
