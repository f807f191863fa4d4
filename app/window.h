// SPDX-License-Identifier: GPL-3.0-or-later
// The window and what only a build with a window can do. Without MW_UI these functions throw Error NO-WINDOW.
#pragma once
#include <filesystem>
#include <utility>
#include <vector>

#include "app/subcommand.h"
#include "core/compare/comparison.h"

namespace mw::app {

bool has_window();   // whether this is a build with a window
bool has_display();  // whether the environment names a display

// Opens the window with the experiment of `common`, starts its run if asked, and returns the exit code.
int open_window(const CommonOptions& common, StartRun start);

enum class TourTheme { by_page, light, dark, both };
struct TourPictures {
  std::filesystem::path out{};
  std::vector<std::pair<int, int>> sizes{};  // width, height; empty: by page
  TourTheme theme = TourTheme::by_page;
};
// Opens every page offscreen and saves PNGs of each in `out`. Returns the files.
std::vector<std::filesystem::path> take_tour(const CommonOptions& common, const TourPictures& pictures);

// Paints a comparison as .pdf, .png or .svg.
void paint_comparison(const CommonOptions& common, const std::vector<compare::ComparedRun>& columns,
                      const std::filesystem::path& file);

}  // namespace mw::app
