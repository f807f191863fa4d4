// SPDX-License-Identifier: GPL-3.0-or-later
// `tune`: trains an experiment several times with other values of some keys.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/jobs/tune.h"

namespace mw::app {
namespace {

struct TuneCommandOptions {
  jobs::TuneOptions tuning;
  std::string resume;  // id of an earlier tuning
};

void add_tune_options(CLI::App& command, CommonOptions& common, TuneCommandOptions& options) {
  add_file_and_set_options(command, common, "Experiment file", FileArgument::optional);
  command
      .add_option("--vary", options.tuning.varied,
                  "key=value,value,... or key=low..high (key=log:low..high: by logarithm); repeatable")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--method",
          [&options](const std::string& name) {
            options.tuning.method = parse<jobs::TuneMethod>(name).value_or(jobs::TuneMethod::grid);
          },
          "Every combination, random ones, or random ones of which only the better half goes on")
      ->check(CLI::IsMember({"grid", "random", "halving"}))
      ->default_str("grid");
  command.add_option("--trials", options.tuning.trials, "Number of trials of random and halving")
      ->capture_default_str();
  command.add_option("--reduction", options.tuning.reduction, "Halving: each comparison keeps 1/N of the trials")
      ->capture_default_str();
  command.add_option("--tune-seed", options.tuning.seed, "Seed of the drawn values")
      ->check(CLI::Range(0.0, 9007199254740991.0))
      ->capture_default_str();
  command.add_option("--metric", options.tuning.metric, "What is compared: eval/loss, train/loss, eval/answers_right")
      ->capture_default_str();
  command.add_option("--resume", options.resume, "Go on with this tuning, such as tune-1");
}

int run_tune(const CommonOptions& common, const TuneCommandOptions& options) {
  if (common.file.empty() == options.resume.empty())
    throw Error("USAGE", "tune needs an experiment file, or --resume without one",
                {.fix = "for example: meshwright tune " + example_file("tiny-lora.json").string() +
                        " --vary train.learning_rate=0.001,0.005"});
  if (!options.resume.empty() && (!common.sets.empty() || !options.tuning.varied.empty()))
    throw Error("USAGE", "a resumed tuning keeps its experiment and what it varies",
                {.place = common.sets.empty() ? "--vary" : "--set", .fix = "remove the option, or start a new tuning"});
  ProgressLine line;
  jobs::TuneRequest request{.runs_folder = common.runs_folder, .experiment = {}, .options = options.tuning};
  if (options.resume.empty())
    request.experiment = load_experiment(common);
  else
    request.resume = options.resume;
  request.context = plan::load_once(load_context);
  request.on_progress = [&](const jobs::TuneProgress& p) {
    line.update("trial " + std::to_string(p.trial) + " of " + std::to_string(p.trials) + " (" + p.run + "): step " +
                std::to_string(p.step) + (p.until > 0 ? " of " + std::to_string(p.until) : std::string()) +
                (p.eta_seconds ? "  ETA " + to_text(Seconds(*p.eta_seconds)) : std::string()));
  };
  request.on_id = [&](const std::string& id) {
    line.message(id + ": go on after a stop with `meshwright tune --resume " + id + "`");
  };
  const jobs::TuneReport report = jobs::tune(request, common.stop);
  line.clear();
  print_answer(common, jobs::to_json(report), jobs::to_text(report));
  if (report.state == RunState::cancelled) return exit_code(RunState::cancelled);
  return report.best ? 0 : 1;
}

}  // namespace

Subcommand tune_subcommand() {
  return make_subcommand("tune", "Train with several values of some keys, one run after another", add_tune_options,
                         run_tune);
}

}  // namespace mw::app
