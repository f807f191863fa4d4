// SPDX-License-Identifier: GPL-3.0-or-later
// `port`: turns a GPU recipe of TRL and PEFT into an experiment and shows its adaptations to JAX; or writes an
// experiment as settings of TRL.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/files.h"
#include "core/port/port_report.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct PortCommandOptions {
  std::vector<fs::path> files{};
  std::string to = "gpu", gpu{}, tpu{};
  fs::path out{}, document{};
};

void add_port_options(CLI::App& command, CommonOptions&, PortCommandOptions& options) {
  command
      .add_option("PATH", options.files,
                  "Script, notebook, adapter_config.json, training_args.json, YAML of Accelerate; with --to trl an "
                  "experiment")
      ->required();
  command
      .add_option("--to", options.to,
                  "What --out holds: gpu, the experiment of the recipe as it is; tpu, the ported one; trl, the "
                  "settings of TRL for an experiment")
      ->check(CLI::IsMember({"gpu", "tpu", "trl"}));
  command.add_option("--gpu", options.gpu, "GPU target of the recipe; default: as many H100 as it has processes");
  command.add_option("--tpu", options.tpu, "TPU target to port to; default: the v5p slice with as many chips");
  command.add_option("--out", options.out, "Experiment file to write; with --to trl a script, beside it FILE.yaml");
  command.add_option("--document", options.document, "Markdown file with the settings and the adaptations");
}

// An output must not replace an input.
void require_other_file(const fs::path& out, const std::vector<fs::path>& inputs) {
  std::error_code error;
  for (const fs::path& input : inputs)
    if (fs::equivalent(out, input, error))
      throw Error("USAGE", "the output would replace the input",
                  {.file = out.string(), .place = "--out", .fix = "choose another file"});
}

int run_to_trl(const CommonOptions& common, const PortCommandOptions& options) {
  if (options.files.size() != 1) throw Error("USAGE", "--to trl takes one experiment", {.place = "PATH"});
  const port::TrlSettings settings =
      port::trl_settings(experiment::Experiment::load(options.files.front()), load_context());
  if (!options.out.empty()) {
    write_file_atomically(options.out, settings.script);
    write_file_atomically(fs::path(options.out).replace_extension(".yaml"), settings.accelerate);
  }
  if (!options.document.empty()) write_file_atomically(options.document, port::trl_document(settings));
  print_answer(common, port::trl_json(settings), port::trl_text(settings));
  return 0;
}

int run_port(const CommonOptions& common, const PortCommandOptions& options) {
  for (const fs::path& out : {options.out, options.document})
    if (!out.empty()) require_other_file(out, options.files);
  if (options.to == "trl") return run_to_trl(common, options);
  const port::PortReport report =
      port::port_recipe({.files = options.files, .gpu = options.gpu, .tpu = options.tpu}, load_context());
  if (options.to == "tpu" && !report.tpu) throw Error(*report.no_plan);
  if (!options.out.empty()) (options.to == "tpu" ? report.tpu->experiment : report.recipe.experiment).save(options.out);
  if (!options.document.empty()) write_file_atomically(options.document, port::report_document(report));
  print_answer(common, port::report_json(report), port::report_text(report));
  return 0;
}

}  // namespace

Subcommand port_subcommand() {
  return make_subcommand("port", "Turn a TRL and PEFT recipe into an experiment, and show its adaptations to JAX",
                         add_port_options, run_port);
}

}  // namespace mw::app
