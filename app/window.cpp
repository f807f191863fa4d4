// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window.h"

#include <cstdlib>

#include "app/load_inputs.h"
#include "core/base/files.h"
#ifdef MW_UI
#include "ui/shell/app.h"
#endif

namespace mw::app {
namespace fs = std::filesystem;

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    if (const char* value = std::getenv(name); value && *value) return true;
  return false;
}

#ifdef MW_UI
bool has_window() {
  return true;
}

int open_window(const CommonOptions& common, StartRun start) {
  // The first start without a file runs the default example, so that the window shows a live run.
  const bool first_start = common.file.empty() && !path_exists(common.runs_folder / "runs.sqlite");
  const ui::WindowOptions options{.experiment = common.file,
                                  .runs_folder = common.runs_folder,
                                  .resources = resources_folder(),
                                  .start = start == StartRun::yes ? ui::Start::run
                                           : first_start          ? ui::Start::first
                                                                  : ui::Start::open};
  int argc = common.argc;
  return ui::run_window(argc, common.argv, options);
}

std::vector<fs::path> take_tour(const CommonOptions& common, const TourPictures& pictures) {
  int argc = common.argc;
  ui::TourOptions options{.out = pictures.out, .runs_folder = common.runs_folder, .resources = resources_folder()};
  options.sizes = pictures.sizes;
  if (pictures.theme == TourTheme::light || pictures.theme == TourTheme::both)
    options.shades.push_back(ui::Shade::light);
  if (pictures.theme == TourTheme::dark || pictures.theme == TourTheme::both) options.shades.push_back(ui::Shade::dark);
  return ui::take_tour(argc, common.argv, options);
}

void paint_comparison(const CommonOptions& common, const std::vector<compare::ComparedRun>& columns,
                      const fs::path& file) {
  int argc = common.argc;
  ui::export_comparison_file(argc, common.argv, columns, file);
}
#else
namespace {

Error no_window() {
  return Error("NO-WINDOW", "this build has no window", {.fix = "configure with -DMW_UI=ON"});
}

}  // namespace

bool has_window() {
  return false;
}

int open_window(const CommonOptions&, StartRun) {
  throw no_window();
}

std::vector<fs::path> take_tour(const CommonOptions&, const TourPictures&) {
  throw no_window();
}

void paint_comparison(const CommonOptions&, const std::vector<compare::ComparedRun>&, const fs::path&) {
  throw no_window();
}
#endif

}  // namespace mw::app
