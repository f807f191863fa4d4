// SPDX-License-Identifier: GPL-3.0-or-later
// The parser of the whole command line.
#pragma once
#include <CLI/CLI.hpp>
#include <vector>

#include "app/subcommand.h"

namespace mw::app {

std::vector<Subcommand> all_subcommands();  // in the order of --help

// The parser writes into `common` and `start`, which must outlive it.
void add_command_line(CLI::App& root, const std::vector<Subcommand>& subcommands, CommonOptions& common,
                      StartRun& start);

}  // namespace mw::app
