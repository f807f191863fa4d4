// SPDX-License-Identifier: GPL-3.0-or-later
// Loads what subcommands read: the experiment and the hardware catalogue.
#pragma once
#include <filesystem>

#include "app/subcommand.h"
#include "core/experiment/experiment.h"
#include "core/hardware/catalogue.h"

namespace mw::app {

// Loads the experiment file with its --set overrides.
experiment::Experiment load_experiment(const CommonOptions& common);

// Loads the shipped hardware and the user's own. Problems of the user's files are printed to standard error.
hardware::Catalogue load_catalogue();

// ~/.config/meshwright/hardware; empty if the user has no home folder.
std::filesystem::path user_hardware_folder();

std::filesystem::path example_file(const std::string& name);  // of the shipped examples

}  // namespace mw::app
