// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>
#include <cstdlib>

#include "app/commands.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

// Where the window keeps what is the user's (XDG base directories).
fs::path config_folder() {
  if (const char* given = std::getenv("XDG_CONFIG_HOME"); given && *given) return fs::path(given) / "meshwright";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".config" / "meshwright" : fs::path();
}

}  // namespace

fs::path own_hardware_folder() {
  const fs::path own = config_folder();
  return own.empty() ? own : own / "hardware";
}

hardware::Catalogue load_catalogue() {
  auto catalogue = hardware::Catalogue::load(fs::path(MW_RESOURCES) / "hardware", own_hardware_folder());
  for (const Problem& p : catalogue.problems()) print_error("%s\n", to_text(p).c_str());
  return catalogue;
}

}  // namespace mw::app
