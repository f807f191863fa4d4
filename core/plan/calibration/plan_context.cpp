// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/plan_context.h"

#include <mutex>
#include <utility>

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"

namespace mw::plan {

PlanContext PlanContext::load(const std::filesystem::path& folder, const std::filesystem::path& user_folder) {
  PlanContext context{.catalogue = hardware::Catalogue::load(folder, user_folder)};
  try {
    if (path_exists(context.catalogue.calibration()))
      context.calibration = read_calibration(context.catalogue.calibration());
  } catch (const Error& error) {
    context.uncalibrated = error.problem();
  }
  return context;
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
