// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/plan_context.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"

namespace mw::plan {

namespace {

std::function<const std::vector<MachineRates>&()> read_when_needed(std::filesystem::path file) {
  struct Rates {
    std::once_flag read;
    std::vector<MachineRates> all;
  };
  return [file = std::move(file), rates = std::make_shared<Rates>()]() -> const std::vector<MachineRates>& {
    std::call_once(rates->read, [&] { rates->all = read_machine_rates(file); });
    return rates->all;
  };
}

}  // namespace

PlanContext PlanContext::load(const std::filesystem::path& folder, const std::filesystem::path& user_folder) {
  PlanContext context{.catalogue = hardware::Catalogue::load(folder, user_folder)};
  try {
    if (path_exists(context.catalogue.calibration()))
      context.calibration = read_calibration(context.catalogue.calibration());
  } catch (const Error& error) {
    context.uncalibrated = error.problem();
  }
  context.processors = read_when_needed(folder / "processors.json");
  try {
    context.machines = own_machine_rates(user_folder);
  } catch (const Error& error) {
    context.unrated = error.problem();
  }
  return context;
}

std::vector<Problem> PlanContext::problems() const {
  std::vector<Problem> all = catalogue.problems();
  if (unrated) all.push_back(*unrated);
  return all;
}

RatesInForce rates_of(const PlanContext& context, const Processor& processor) {
  const MachineRates* found = rates_of(context.machines, context.processors(), processor);
  const bool own =
      std::any_of(context.machines.begin(), context.machines.end(), [&](const auto& r) { return &r == found; });
  return {found, own ? RatesOrigin::measured : RatesOrigin::shipped};
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
