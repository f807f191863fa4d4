// SPDX-License-Identifier: GPL-3.0-or-later
// `calibrate`: what the user's measurements make of the planner's efficiencies; written only when accepted.
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/planning/calibrating.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;
using Then = CalibrateArgs::Then;

int remove_own(const Common& common) {
  const fs::path file = plan::user_calibration_file(own_hardware_folder());
  const bool was = plan::remove_user_calibration(own_hardware_folder()).has_value();
  if (common.output == Output::json)
    print_json({{"removed", was}, {"file", file.string()}});
  else if (was)
    print_text("removed %s (kept as %s.bak); plans use the shipped calibration\n", file.c_str(), file.c_str());
  else
    print_text("there is no %s; plans use the shipped calibration\n", file.c_str());
  return 0;
}

}  // namespace

int calibrate_command(const Common& common, const CalibrateArgs& args) {
  if (args.files.empty() && args.runs.empty()) {
    if (args.then == Then::remove) return remove_own(common);
    throw Error({.id = "USAGE",
                 .message = "calibrate needs measurements",
                 .fix = "give a file of rows, --run RUN, or --remove to go back to the shipped calibration"});
  }
  if (args.then == Then::remove)
    throw Error({.id = "USAGE", .message = "--remove takes no measurements", .fix = "give one or the other"});
  planning::CalibrationRequest question{.files = args.files,
                                        .runs = args.runs,
                                        .runs_folder = common.runs_folder,
                                        .published = fs::path(MW_RESOURCES) / "hardware" / "measurements.json",
                                        .date = planning::today_utc()};
  if (!args.names.empty()) question.names = args.names;
  const hardware::Catalogue catalogue = load_catalogue();
  ProgressLine line;
  const planning::CalibrationResult found = planning::calibrate(
      question, catalogue,
      [&](int done, int total) {
        line.update("hold-out  " + std::to_string(done) + " of " + std::to_string(total) + " parts");
      },
      common.stop);
  line.clear();
  for (const Problem& p : found.problems) print_error("meshwright: %s\n", to_text(p).c_str());
  // Nothing is kept of a file that was not understood whole: a script would not notice what is missing.
  const bool kept = args.then == Then::accept && found.proposal && found.problems.empty();
  const fs::path file = plan::user_calibration_file(own_hardware_folder());
  if (kept) plan::accept_proposal(own_hardware_folder(), *found.proposal);
  if (common.output == Output::json) {
    Json out = planning::calibrated_json(found);
    out["accepted"] = kept;
    out["file"] = kept ? Json(file.string()) : Json(nullptr);
    print_json(out);
  } else {
    print_text("%s", planning::calibrated_text(found).c_str());
    if (kept)
      print_text("\nkept in %s; plans use it from now on\n", file.c_str());
    else if (found.proposal)
      print_text("\nnothing is written%s\n",
                 args.then == Then::accept ? ": correct the rows first" : "; --accept keeps this calibration");
  }
  return found.problems.empty() ? 0 : 2;
}

}  // namespace mw::app
