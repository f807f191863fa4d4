// SPDX-License-Identifier: GPL-3.0-or-later
// Entry points of the window for the command line. Each creates a QApplication: one call per process.
#pragma once
#include <filesystem>
#include <utility>
#include <vector>

#include "ui/theme/theme.h"

namespace mw::compare {
struct ComparedRun;
}

namespace mw::ui {

// run: starts the run when the window is shown; first: also offers what a new user can do.
enum class Start { open, run, first };

struct WindowOptions {
  std::filesystem::path experiment;   // to open; empty: the last document, otherwise the default example
  std::filesystem::path runs_folder;  // the run store
  std::filesystem::path resources;    // holds examples/
  Start start = Start::open;
};
int run_window(int& argc, char** argv, const WindowOptions& options);

// Writes a comparison as png, svg or pdf (or csv, md, tex), without a display. Throws Error EXPORT.
void export_comparison_file(int& argc, char** argv, const std::vector<compare::ComparedRun>& runs,
                            const std::filesystem::path& file);

struct TourOptions {
  std::filesystem::path out;          // created; one PNG per screen
  std::filesystem::path runs_folder;  // a store with at least one finished run, and a size run for the Serve page
  std::filesystem::path resources;
  std::vector<std::pair<int, int>> sizes{};  // width and height of every picture; empty: by page
  std::vector<Shade> shades{};               // empty: by page
};
// Takes pictures of every page with real content, without a display, and returns the files. Throws Error if the store
// has no finished run or a file cannot be written.
std::vector<std::filesystem::path> take_tour(int& argc, char** argv, const TourOptions& options);

}  // namespace mw::ui
