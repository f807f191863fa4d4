// SPDX-License-Identifier: Apache-2.0
// Turns the settings of a TRL and PEFT recipe into an experiment. Values that are computed are listed, never guessed.
// Thread-safe.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/formats/config/config_settings.h"
#include "core/plan/calibration/plan_context.h"

namespace mw::port {

struct MappedSetting {
  formats::ConfigSetting from;
  std::string key;   // of the experiment
  Json value;        // as the experiment holds it
  std::string note;  // empty, or how the two differ
};
struct UnmatchedSetting {
  formats::ConfigSetting from;
  std::string reason;
};
// A value that the files leave to a library or to the user.
struct AssumedSetting {
  std::string key;
  Json value;
  std::string reason;  // "TRL's default (SFTConfig, TRL 1.10)"
};

struct PortedRecipe {
  std::vector<std::string> files;
  experiment::Experiment experiment;  // of the recipe on its GPUs; valid
  int processes = 1;                  // of Accelerate; 1 if the files do not say
  bool adapters = false;              // LoRA; false: every weight is trained
  std::vector<MappedSetting> mapped;
  std::vector<UnmatchedSetting> without_counterpart;
  std::vector<formats::ConfigSetting> not_read;
  std::vector<AssumedSetting> assumed;
};

// `gpu`: the target of the recipe, which its files do not name; empty: as many H100 as it has processes. Throws PORT if
// no file holds a setting of training, the Errors of the readers, and TARGET.
PortedRecipe read_recipe(const std::vector<std::filesystem::path>& files, const std::string& gpu,
                         const plan::PlanContext& context);
// `settings`: of all files, in the order of the files; a later value replaces an earlier one.
PortedRecipe recipe_of(const std::vector<formats::ConfigSetting>& settings, const std::string& gpu,
                       const plan::PlanContext& context);

}  // namespace mw::port
