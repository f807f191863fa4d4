// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/load_inputs.h"

#include <cstdlib>

#include "app/output.h"
#include "app/resources_folder.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

// Follows the XDG base directory specification, as the window does.
fs::path config_folder() {
  if (const char* given = std::getenv("XDG_CONFIG_HOME"); given && *given) return fs::path(given) / "meshwright";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".config" / "meshwright" : fs::path();
}

}  // namespace

experiment::Experiment load_experiment(const CommonOptions& common) {
  experiment::Experiment experiment = experiment::Experiment::load(common.file);
  for (const std::string& note : experiment::apply_sets(experiment, common.sets)) print_note(note);
  return experiment;
}

fs::path user_hardware_folder() {
  const fs::path config = config_folder();
  return config.empty() ? config : config / "hardware";
}

hardware::Catalogue load_catalogue() {
  auto catalogue = hardware::Catalogue::load(resources_folder() / "hardware", user_hardware_folder());
  for (const Problem& problem : catalogue.problems()) print_error("%s\n", to_text(problem).c_str());
  return catalogue;
}

fs::path example_file(const std::string& name) {
  return resources_folder() / "examples" / name;
}

}  // namespace mw::app
