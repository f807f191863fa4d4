// SPDX-License-Identifier: Apache-2.0
#include "core/plan/cost/run_cost.h"

#include "core/experiment/bind.h"

namespace mw::plan {
namespace {

// USD per hour of all chips; 0 if there is no price. The virtual devices of this machine have a price only if the
// experiment sets one.
double hourly_price(const experiment::ExperimentConfig& config, const plan::PlanContext& context) {
  const hardware::Target target = context.catalogue.target(config.target.id);
  double each = config.price.usd_per_chip_hour;
  if (const auto* listed = context.catalogue.price(target.chip.id, config.price.region, config.price.price_class);
      each <= 0 && listed)
    each = listed->usd_per_chip_hour;
  int chips = target.chips();
  if (config.target.id == "cpu") {
    chips = 1;
    for (const mesh::MeshAxis& axis : config.mesh.axes) chips *= axis.size;
  }
  return each * chips;
}

}  // namespace

std::optional<RunCost> run_cost(const store::Store& store, const store::RunRow& run, const plan::PlanContext& context) {
  double hourly = 0;
  try {
    hourly = hourly_price(store.experiment(run.id).valid_values(), context);
  } catch (const Error&) {  // a damaged document or a target that this machine does not know
  }
  if (hourly <= 0) return std::nullopt;
  const double seconds = run.method == "sweep" ? store.sum_of_points(run.id, "duration") : run.seconds;
  if (seconds <= 0) return std::nullopt;
  return RunCost{seconds / 3600 * hourly, run.source == "predicted"};
}

}  // namespace mw::plan
