// SPDX-License-Identifier: GPL-3.0-or-later
// `tour`: opens every page offscreen with example content and saves a PNG of each.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "app/window.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

struct TourOptions {
  TourPictures pictures{};
  std::vector<std::string> sizes{};
};

std::pair<int, int> parse_size(const std::string& text) {
  constexpr int kLeast = 200, kMost = 8000;
  int width = 0, height = 0;
  char end = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &end) == 2 && std::min(width, height) >= kLeast &&
      std::max(width, height) <= kMost)
    return {width, height};
  throw Error("USAGE", "not a size of a picture",
              {.place = "--size",
               .found = text,
               .expected = "WIDTHxHEIGHT from 200x200 to 8000x8000",
               .fix = "for example --size 1280x800"});
}

bool has_finished_run(const CommonOptions& common, const std::string& kind) {
  const std::vector<store::RunRow> rows = store::Store(common.runs_folder).list();
  return std::any_of(rows.begin(), rows.end(), [&](const store::RunRow& row) {
    const bool matches = kind == "train" ? row.method != "size" && row.method != "sweep" : row.method == kind;
    return row.state == RunState::done && matches;
  });
}

// Adds a run of this kind to the store if it has none: the default example with the given settings.
void ensure_run(CommonOptions common, const std::string& kind, const std::vector<std::string>& sets) {
  if (has_finished_run(common, kind)) return;
  common.output = Output::text;
  common.file = example_file("tiny-lora.json");
  common.sets = sets;
  common.sets.push_back("kind=" + kind);
  run_subcommand().run(common);
}

// Adds simulated sweeps of the published servers if the store has no sweep.
void ensure_sweeps(CommonOptions common) {
  if (has_finished_run(common, "sweep")) return;
  common.output = Output::text;
  common.sets = {};
  for (const char* name : {"paper-serve-v6e-8.json", "paper-serve-2xh100.json"}) {
    common.file = example_file(name);
    sweep_subcommand().run(common);
  }
}

int run_tour(const CommonOptions& common, const TourOptions& options) {
  TourPictures pictures = options.pictures;
  for (const std::string& size : options.sizes) pictures.sizes.push_back(parse_size(size));
  if (has_window()) {
    ensure_run(common, "train", {});
    // The memory limit makes the largest batches fail, which the page then shows.
    ensure_run(common, "size",
               {"name=Small world, batch sizes", "size.batches=1,2,4,8,16,32,64", "size.prompt_len=96",
                "size.new_tokens=32", "target.memory_gib=0.0625"});
    ensure_sweeps(common);
  }
  Json screens = Json::array();
  for (const std::filesystem::path& png : take_tour(common, pictures)) screens.push_back(png.string());
  if (common.output == Output::json)
    print_json({{"screens", screens}});
  else
    for (const Json& png : screens) print_text("%s\n", png.get<std::string>().c_str());
  return 0;
}

}  // namespace

Subcommand tour_subcommand() {
  Subcommand tour = make_subcommand<TourOptions>(
      "tour", "Open every page and save a PNG of each (needs no display)",
      [](CLI::App& command, CommonOptions&, TourOptions& options) {
        command.add_option("--out", options.pictures.out, "Folder for the PNGs")->required();
        command.add_option("--size", options.sizes, "Size of the window, e.g. 1280x800; may be repeated");
        command.add_option("--theme", options.pictures.theme, "light, dark or both")
            ->transform(CLI::CheckedTransformer(std::map<std::string, TourTheme>{
                {"light", TourTheme::light}, {"dark", TourTheme::dark}, {"both", TourTheme::both}}));
      },
      run_tour);
  tour.stops_cleanly = false;
  return tour;
}

}  // namespace mw::app
