// SPDX-License-Identifier: Apache-2.0
// The inputs of a plan besides the document: chips, slices, prices, calibration and rates of processors. Read once and
// passed down, so that nothing below reads a file; after a file changes, load a new context. Any thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "core/hardware/catalogue.h"
#include "core/plan/calibration/calibrate.h"
#include "core/plan/calibration/machine_rates.h"

namespace mw::plan {

struct PlanContext {
  hardware::Catalogue catalogue;
  Calibration calibration{};              // without factors if there is no file
  std::optional<Problem> uncalibrated{};  // why the calibration could not be read; see calibration_of()
  MeasuredMachine machine{};              // measured here
  // Shipped, by instructions: read when a plan for this machine first needs them. Throws as read_machine_rates().
  struct Classes {
    std::vector<MachineRates> rates{};
    EngineCosts costs{};
  };
  std::function<const Classes&()> processors{};
  std::optional<Problem> unused{};        // an accepted calibration of this machine, which no plan uses
  std::optional<Problem> unrated{};       // why `machine` could not be read
  std::vector<Problem> problems() const;  // of the user's files, whose other rows are in force

  // Reads the shipped `folder`, then what `user_folder` adds (Catalogue::load()). A calibration that cannot be read
  // does not prevent loading: prices and targets stay known.
  static PlanContext load(const std::filesystem::path& folder, const std::filesystem::path& user_folder = {});
};

// Throws Error CALIBRATION if it could not be read: a plan without it would look calibrated.
const Calibration& calibration_of(const PlanContext& context);

// The rates of a processor for plans of the engine, and the newest run that corrects plans of this work, weights and
// devices. They refer to the context.
RatesInForce rates_of(const PlanContext& context, const Processor& processor, const Request& request);

// The context as it was before a run of the own store measured this machine, whose plan it does not correct then.
PlanContext without_run(PlanContext context, const std::string& run);

using PlanContextPtr = std::shared_ptr<const PlanContext>;
// The context in force, loaded when it is first needed. Throws the errors of PlanContext::load(). Called on any thread.
using LoadContext = std::function<PlanContextPtr()>;
// Loads at the first call that succeeds, and keeps the result.
LoadContext load_once(std::function<PlanContext()> load);

}  // namespace mw::plan
