// SPDX-License-Identifier: GPL-3.0-or-later
// `calibrate`: fits the planner's efficiencies to the user's measurements and writes them only with --accept.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/audit/calibrating.h"
#include "core/base/text.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct CalibrateOptions {
  std::vector<fs::path> files;
  std::vector<std::string> runs, efficiencies;
  bool accept = false, remove = false;  // at most one of them
};

int remove_calibration(const CommonOptions& common) {
  const fs::path file = plan::user_calibration_file(user_hardware_folder());
  const bool removed = plan::remove_user_calibration(user_hardware_folder()).has_value();
  if (common.output == Output::json)
    print_json({{"removed", removed}, {"file", file.string()}});
  else if (removed)
    print_text("removed %s (backup: %s.bak); plans use the shipped calibration\n", file.c_str(), file.c_str());
  else
    print_text("%s does not exist; plans use the shipped calibration\n", file.c_str());
  return 0;
}

audit::CalibrationResult fit(const CommonOptions& common, const CalibrateOptions& options) {
  audit::CalibrationRequest request{.files = options.files,
                                    .runs = options.runs,
                                    .runs_folder = common.runs_folder,
                                    .published = resources_folder() / "hardware" / "measurements.json",
                                    .date = store::today_utc()};
  request.names = options.efficiencies;
  ProgressLine line;
  return audit::calibrate(
      request, load_context(),
      [&](int done, int total) {
        line.update("hold-out  " + std::to_string(done) + " of " + std::to_string(total) + " parts");
      },
      common.stop);
}

void print_calibration(const CommonOptions& common, const audit::CalibrationResult& calibrated, bool accept,
                       bool written) {
  const fs::path file = plan::user_calibration_file(user_hardware_folder());
  if (common.output == Output::json) {
    Json out = audit::calibrated_json(calibrated);
    out["accepted"] = written;
    out["file"] = written ? Json(file.string()) : Json(nullptr);
    print_json(out);
    return;
  }
  print_text("%s", audit::calibrated_text(calibrated).c_str());
  if (written)
    print_text("\nwritten to %s; plans use it from now on\n", file.c_str());
  else if (calibrated.proposal)
    print_text("\nnothing is written%s\n", accept ? ": correct the rows first" : "; --accept keeps this calibration");
}

void add_calibrate_options(CLI::App& command, CommonOptions&, CalibrateOptions& options) {
  command.add_option("files", options.files, "Measurements in the format of resources/hardware/measurements.json");
  command
      .add_option("--run-id,--run", options.runs,
                  "A training run of this machine, to show its error; nothing is fitted to it (repeatable)")
      ->allow_extra_args(false);
  command
      .add_option("--fit", options.efficiencies,
                  "Efficiencies to fit, of training and servers (default: matmul; of servers " +
                      joined(plan::FitOptions().serving, ", ") + ")")
      ->delimiter(',');
  auto* accept = command.add_flag("--accept", options.accept, "Keep the fitted calibration: plans use it from then on");
  command.add_flag("--remove", options.remove, "Remove your calibration and return to the shipped one")
      ->excludes(accept);
}

int run_calibrate(const CommonOptions& common, const CalibrateOptions& options) {
  if (options.files.empty() && options.runs.empty()) {
    if (options.remove) return remove_calibration(common);
    throw Error("USAGE", "calibrate needs measurements",
                {.fix = "give a file of rows, --run RUN, or --remove to return to the shipped calibration"});
  }
  if (options.remove)
    throw Error("USAGE", "--remove cannot be combined with measurements",
                {.fix = "give either --remove or measurements"});
  const audit::CalibrationResult calibrated = fit(common, options);
  for (const Problem& problem : calibrated.problems) print_error("meshwright: %s\n", to_text(problem).c_str());
  if (options.accept && calibrated.proposal && calibrated.proposal->efficiencies.empty())
    throw Error("CALIBRATION",
                "a calibration of this machine cannot be accepted: its plans follow from its runs already",
                {.place = "--accept",
                 .found = "only runs of this machine",
                 .expected = "a file of rows of other targets",
                 .fix = "leave --accept out, and measure this machine with `meshwright bench --save`"});
  // A file with bad rows is not accepted in part: a script would not notice which rows are missing.
  const bool written = options.accept && calibrated.proposal && calibrated.problems.empty();
  if (written) plan::accept_proposal(user_hardware_folder(), *calibrated.proposal);
  print_calibration(common, calibrated, options.accept, written);
  return calibrated.problems.empty() ? 0 : 2;
}

}  // namespace

Subcommand calibrate_subcommand() {
  return make_subcommand("calibrate", "Fit the planner to your own measurements and show the error on held-out rows",
                         add_calibrate_options, run_calibrate);
}

}  // namespace mw::app
