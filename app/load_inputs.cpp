// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/load_inputs.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "app/output.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/jobs/token_report.h"

namespace mw::app {

namespace fs = std::filesystem;
namespace {

// Follows the XDG base directory specification, as the window does.
fs::path config_folder() {
  if (const char* given = std::getenv("XDG_CONFIG_HOME"); given && *given) return fs::path(given) / "meshwright";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".config" / "meshwright" : fs::path();
}

}  // namespace

experiment::Experiment load_experiment(const CommonOptions& common) {
  experiment::Experiment experiment = experiment::Experiment::load(common.file);
  for (const std::string& note : experiment::apply_sets(experiment, common.sets)) print_note(note);
  return experiment;
}

store::RunId run_named(const store::Store& store, const std::string& name) {
  const std::vector<store::RunRow> runs = name == "latest" ? store.list() : std::vector<store::RunRow>();
  return runs.empty() ? name : runs.front().id;
}

void add_tuned_run_options(CLI::App& command, TunedRun& tuned, const std::string& help) {
  command.add_option("--run-id,--run", tuned.run, help);
  command
      .add_option_function<std::string>(
          "--checkpoint",
          [&tuned](const std::string& name) {
            tuned.checkpoint = parse<train::CheckpointChoice>(name).value_or(train::CheckpointChoice::best);
          },
          "Checkpoint of --run-id: best is the one that train.keep_best kept, if the run has one")
      ->check(CLI::IsMember({"best", "last"}))
      ->default_str("best");
}

store::RunId run_of(const CommonOptions& common, const TunedRun& tuned) {
  if (tuned.run != "latest") return tuned.run;
  const store::Store store(common.runs_folder);
  for (const store::RunRow& row : store.list())
    if (train::latest_checkpoint(store.run_folder(row.id))) return row.id;
  return tuned.run;
}

fs::path tuned_model(const CommonOptions& common, const TunedRun& tuned) {
  return jobs::tuned_model_of(store::Store(common.runs_folder), run_of(common, tuned), tuned.checkpoint);
}

void use_tuned_run(const CommonOptions& common, const TunedRun& tuned, experiment::Experiment& experiment) {
  if (tuned.run.empty()) return;
  const fs::path folder = fs::absolute(tuned_model(common, tuned));
  const bool is_adapter = is_file(folder / "adapter_config.json");
  experiment::apply_sets(experiment, {(is_adapter ? "lora.adapter=" : "model.path=") + folder.string()});
}

fs::path user_hardware_folder() {
  const fs::path config = config_folder();
  return config.empty() ? config : config / "hardware";
}

fs::path measured_folder(const CommonOptions& common) {
  const bool is_own = common.runs_folder == store::default_folder() && !std::getenv("MESHWRIGHT_RUNS");
  return is_own ? user_hardware_folder() : fs::path();
}

plan::PlanContext load_context() {
  auto context = plan::PlanContext::load(resources_folder() / "hardware", user_hardware_folder());
  for (const Problem& problem : context.problems()) print_error("%s\n", to_text(problem).c_str());
  return context;
}

fs::path example_file(const std::string& name) {
  return resources_folder() / "examples" / name;
}

namespace fs = std::filesystem;

fs::path resources_folder() {
  std::error_code error;
  const fs::path program = fs::canonical("/proc/self/exe", error);
  const fs::path expected = program.parent_path().parent_path() / "share" / "meshwright";
  const fs::path folder = fs::canonical(expected, error);
  if (error || !fs::is_directory(folder / "hardware", error))
    throw Error("NO-RESOURCES", "the files that belong to this program are missing",
                {.file = expected.string(),
                 .expected = "the folder that is installed together with " + program.string(),
                 .fix = "install the package again, or build with CMake, which makes it"});
  return folder;
}

}  // namespace mw::app
