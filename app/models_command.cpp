// SPDX-License-Identifier: GPL-3.0-or-later
// `models`: lists the models, adapters and checkpoints on this machine, with the prediction for serving them here.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/text.h"
#include "core/views/choices.h"

namespace mw::app {
namespace {

struct ModelsOptions {
  std::vector<std::filesystem::path> folders{};
};

void add_models_options(CLI::App& command, CommonOptions&, ModelsOptions& options) {
  command.add_option("--folder", options.folders, "Folder to search, too, with its subfolders (repeatable)")
      ->allow_extra_args(false);
}

std::string rate_text(const views::FoundChoice& choice) {
  if (!choice.tokens_per_second) return "-";
  const plan::Estimate& rate = *choice.tokens_per_second;
  return number_text(rate.value, 3) + " (" + number_text(rate.low, 3) + " to " + number_text(rate.high, 3) + ")" +
         (choice.weights == choice.model.dtype ? "" : " in " + choice.weights);
}

void print_models(const std::vector<views::FoundChoice>& choices) {
  const auto print = [](const std::array<std::string, 8>& texts) {
    constexpr int kWidths[] = {-12, -8, -14, 8, 10, -9, -24, 0};
    std::vector<TableCell> cells;
    for (size_t i = 0; i < texts.size(); ++i) cells.push_back({texts[i], kWidths[i]});
    print_text("%s\n", table_row(cells).c_str());
  };
  print({"place", "kind", "family", "params", "size", " dtype", "predicted tokens/s here", "name"});
  for (const views::FoundChoice& choice : choices) {
    const importing::FoundModel& model = choice.model;
    const bool too_large = choice.fits && !*choice.fits;
    print({std::string(to_string(model.place)), std::string(to_string(model.kind)), model.family,
           count_text(static_cast<double>(model.parameters)), to_text(Bytes(static_cast<std::int64_t>(model.bytes))),
           " " + model.dtype, too_large ? "does not fit" : rate_text(choice), model.name});
    print_text("%s%s\n", std::string(13, ' ').c_str(), model.folder.c_str());
  }
}

int run_models(const CommonOptions& common, const ModelsOptions& options) {
  importing::ModelFolders folders = importing::model_folders(common.runs_folder);
  folders.others = options.folders;
  const importing::FoundModels found = importing::find_models(folders, common.stop);
  const plan::PlanContext context = load_context();
  std::vector<views::FoundChoice> choices;
  for (const importing::FoundModel& model : found.models) {
    if (common.stop.stop_requested()) throw cancelled("the search for models");
    choices.push_back(views::predict_here(model, experiment::Experiment(), context));
  }
  if (common.output == Output::json) {
    Json models = Json::array(), skipped = Json::array();
    for (const views::FoundChoice& choice : choices) models.push_back(views::to_json(choice));
    for (const Problem& problem : found.skipped)
      skipped.push_back({{"path", problem.file}, {"reason", problem.message}});
    print_json({{"models", models}, {"skipped", skipped}});
    return 0;
  }
  if (choices.empty())
    print_text("no models found; name the folder that holds them with --folder\n");
  else
    print_models(choices);
  for (const Problem& problem : found.skipped) print_note("skipped " + to_text(problem));
  return 0;
}

}  // namespace

Subcommand models_subcommand() {
  return make_subcommand("models", "List the models on this machine: whether they fit and how fast they would be",
                         add_models_options, run_models);
}

}  // namespace mw::app
