// SPDX-License-Identifier: GPL-3.0-or-later
// The window and what only a build with a window can do. Without MW_UI these functions throw Error NO-WINDOW.
#pragma once
#include <filesystem>
#include <vector>

#include "app/subcommand.h"
#include "core/compare/comparison.h"

namespace mw::app {

bool has_window();   // whether this is a build with a window
bool has_display();  // whether the environment names a display

// Opens the window with the experiment of `common`, starts its run if asked, and returns the exit code.
int open_window(const CommonOptions& common, bool start_run);

// Opens every page offscreen and saves a PNG of each in `out`. Returns the files.
std::vector<std::filesystem::path> take_tour(const CommonOptions& common, const std::filesystem::path& out);

// Paints a comparison as .pdf, .png or .svg.
void paint_comparison(const CommonOptions& common, const std::vector<compare::ComparedRun>& columns,
                      const std::filesystem::path& file);

}  // namespace mw::app
