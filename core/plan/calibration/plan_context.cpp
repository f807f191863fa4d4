// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/plan_context.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"

namespace mw::plan {

namespace {

std::function<const PlanContext::Classes&()> read_when_needed(std::filesystem::path file) {
  struct Kept {
    std::once_flag read;
    PlanContext::Classes all;
  };
  return [file = std::move(file), kept = std::make_shared<Kept>()]() -> const PlanContext::Classes& {
    std::call_once(kept->read, [&] { kept->all = {read_machine_rates(file), read_engine_costs(file)}; });
    return kept->all;
  };
}

// Plans of the engine follow from the benchmark and the runs of the machine. Version 1.0 accepted factors for it, too.
void leave_out_engine(PlanContext& context) {
  if (std::erase_if(context.calibration.factors,
                    [](const CalibrationFactor& f) { return f.stack == model::Stack::engine; }) > 0)
    context.unused = {.id = "CALIBRATION",
                      .severity = Severity::warning,
                      .message =
                          "the accepted calibration of cpu is not used: plans of this machine follow from "
                          "`meshwright bench --save` and from its runs",
                      .file = context.catalogue.calibration().string(),
                      .place = "factors",
                      .fix = "remove it with `meshwright calibrate --remove`"};
}

}  // namespace

PlanContext PlanContext::load(const std::filesystem::path& folder, const std::filesystem::path& user_folder) {
  PlanContext context{.catalogue = hardware::Catalogue::load(folder, user_folder)};
  try {
    if (path_exists(context.catalogue.calibration()))
      context.calibration = read_calibration(context.catalogue.calibration());
    leave_out_engine(context);
  } catch (const Error& error) {
    context.uncalibrated = error.problem();
  }
  context.processors = read_when_needed(folder / "processors.json");
  try {
    context.machine = own_measurements(user_folder);
  } catch (const Error& error) {
    context.unrated = error.problem();
  }
  return context;
}

std::vector<Problem> PlanContext::problems() const {
  std::vector<Problem> all = catalogue.problems();
  for (const auto& problem : {unused, unrated})
    if (problem) all.push_back(*problem);
  return all;
}

PlanContext without_run(PlanContext context, const std::string& run) {
  std::erase_if(context.machine.rates, [&](const MachineRates& r) { return r.source == run; });
  std::erase_if(context.machine.runs, [&](const MeasuredRun& r) { return r.run == run; });
  return context;
}

RatesInForce rates_of(const PlanContext& context, const Processor& processor, const Request& request) {
  const std::vector<MachineRates>& own = context.machine.rates;
  const PlanContext::Classes& classes = context.processors();
  RatesInForce found{.rates = rates_of(own, classes.rates, processor), .costs = classes.costs};
  if (!found.rates) return found;
  if (std::any_of(own.begin(), own.end(), [&](const auto& r) { return &r == found.rates; }))
    found.origin = RatesOrigin::measured;
  const auto run = std::find_if(context.machine.runs.begin(), context.machine.runs.end(), [&](const MeasuredRun& r) {
    return r.processor == processor && r.devices == request.mesh.devices() && r.work == request.work &&
           r.weights == request.weights && r.basis == basis_of(*found.rates);
  });
  if (run != context.machine.runs.end()) found.run = &*run;
  return found;
}

const Calibration& calibration_of(const PlanContext& context) {
  if (context.uncalibrated) throw Error(*context.uncalibrated);
  return context.calibration;
}

LoadContext load_once(std::function<PlanContext()> load) {
  struct Kept {
    std::mutex mutex;
    PlanContextPtr context;
  };
  return [load = std::move(load), kept = std::make_shared<Kept>()] {
    const std::lock_guard lock(kept->mutex);
    if (!kept->context) kept->context = std::make_shared<const PlanContext>(load());
    return kept->context;
  };
}

}  // namespace mw::plan
