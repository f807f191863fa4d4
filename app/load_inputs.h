// SPDX-License-Identifier: GPL-3.0-or-later
// Loads what subcommands read: the experiment and the hardware catalogue.
#pragma once
#include <filesystem>

#include "app/subcommand.h"
#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/store/store.h"
#include "core/train/checkpoint.h"

namespace mw::app {

// Loads the experiment file with its --set overrides.
experiment::Experiment load_experiment(const CommonOptions& common);

// The id of the newest run for `latest`, else the name: for every option that takes the id of a run.
store::RunId run_named(const store::Store& store, const std::string& name);

// A run of the store whose checkpoint is the tuned model.
struct TunedRun {
  std::string run{};  // id or "latest": the newest run with a checkpoint
  train::CheckpointChoice checkpoint = train::CheckpointChoice::best;
};
// --run-id and --checkpoint.
void add_tuned_run_options(CLI::App& command, TunedRun& tuned, const std::string& help);
store::RunId run_of(const CommonOptions& common, const TunedRun& tuned);
// Throws RUN if the run is unknown or has no checkpoint.
std::filesystem::path tuned_model(const CommonOptions& common, const TunedRun& tuned);
// Sets lora.adapter to the checkpoint of the run, or model.path after full training. Does nothing without a run.
void use_tuned_run(const CommonOptions& common, const TunedRun& tuned, experiment::Experiment& experiment);

// Loads the shipped hardware and the user's own. Problems of the user's files are printed to standard error.
plan::PlanContext load_context();

// ~/.config/meshwright/hardware; empty if the user has no home folder.
std::filesystem::path user_hardware_folder();
// user_hardware_folder() for measurements of runs; empty for runs in a folder other than the user's, as those of tests.
std::filesystem::path measured_folder(const CommonOptions& common);

std::filesystem::path example_file(const std::string& name);  // of the shipped examples

// The shipped files: share/meshwright beside the folder of the program, wherever both are installed; in a build folder
// it is a link to resources/. Throws Error NO-RESOURCES if it is missing.
std::filesystem::path resources_folder();

}  // namespace mw::app
