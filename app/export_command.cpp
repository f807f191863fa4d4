// SPDX-License-Identifier: GPL-3.0-or-later
// `export`: writes a folder that runs the experiment on another machine.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/jobs/recipe_export.h"

namespace mw::app {
namespace {

struct ExportOptions {
  std::string recipe;
  TunedRun tuned{};
  std::filesystem::path out{};
  bool force = false;
};

void add_export_options(CLI::App& command, CommonOptions& common, ExportOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--recipe", options.recipe, "tunix, torchax, trl-fsdp, vllm-tpu or vllm-gpu")->required();
  command.add_option("--out", options.out, "Output folder: new, empty, or an earlier export")->required();
  add_tuned_run_options(command, options.tuned, "Start from, or serve, the best checkpoint of this run, or latest");
  command.add_flag("--force", options.force, "Overwrite files of an earlier export that were edited since");
}

int run_export(const CommonOptions& common, const ExportOptions& options) {
  const model::Stack kind = recipes::parse_recipe(options.recipe);
  const auto templates = resources_folder() / "recipes";
  experiment::Experiment experiment = load_experiment(common);
  use_tuned_run(common, options.tuned, experiment);
  ProgressLine line;
  const recipes::RecipeInput input =
      jobs::recipe_input(kind, experiment, load_context(), templates, common.stop, [&](long done, long total) {
        line.update("reading data: " + std::to_string(done) + " of " + std::to_string(total));
      });
  const auto overwrite = options.force ? recipes::Overwrite::changed_files : recipes::Overwrite::refuse;
  const auto files = recipes::write_recipe(input, templates, options.out, overwrite);
  line.clear();
  if (common.output == Output::json) {
    Json answer{
        {"recipe", options.recipe}, {"out", options.out.string()}, {"files", files}, {"remarks", input.remarks}};
    if (input.source)
      answer["source"] = {{"id", input.source->id},
                          {"revision", input.source->revision},
                          {"license", input.source->license},
                          {"rows", input.source->rows}};
    print_json(answer);
    return 0;
  }
  print_text("%s: %s in %s\n", std::string(recipes::description(kind)).c_str(), counted(files.size(), "file").c_str(),
             options.out.c_str());
  for (const std::string& remark : input.remarks) print_text("- %s\n", remark.c_str());
  return 0;
}

}  // namespace

Subcommand export_subcommand() {
  return make_subcommand("export", "Write a folder that runs the experiment on another machine, with its own README",
                         add_export_options, run_export);
}

}  // namespace mw::app
