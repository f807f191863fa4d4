// SPDX-License-Identifier: GPL-3.0-or-later
// The subcommands, each defined in the file of its name (audit_command.cpp).
#pragma once
#include "app/subcommand.h"

namespace mw::app {

Subcommand audit_subcommand();
Subcommand calibrate_subcommand();
Subcommand compare_subcommand();
Subcommand convert_subcommand();
Subcommand export_subcommand();
Subcommand generate_subcommand();
Subcommand import_subcommand();
Subcommand inspect_subcommand();
Subcommand launch_subcommand();
Subcommand merge_subcommand();
Subcommand plan_subcommand();
Subcommand replay_subcommand();
Subcommand run_subcommand();
Subcommand runs_subcommand();
Subcommand search_subcommand();
Subcommand serve_subcommand();
Subcommand size_subcommand();
Subcommand sweep_subcommand();
Subcommand tour_subcommand();
Subcommand watch_subcommand();

}  // namespace mw::app
