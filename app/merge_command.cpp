// SPDX-License-Identifier: GPL-3.0-or-later
// `merge`: merges an adapter into its base model and releases the result if every weight is right. `parity`:
// compares a folder that was merged before.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/jobs/merge_adapter.h"
#include "core/launch/launch.h"

namespace mw::app {
namespace {

struct MergeOptions : AdapterOptions {
  TunedRun tuned{};
  std::vector<std::string> prompts{};
  bool allow_unchecked = false;
  jobs::CompareLogits logits = jobs::CompareLogits::no;
};

void add_prompt_option(CLI::App& command, std::vector<std::string>& prompts) {
  command.add_option("--prompt", prompts, "Text to compare logits and greedy text on, too; repeatable");
}

void add_merge_options(CLI::App& command, CommonOptions&, MergeOptions& options) {
  add_adapter_options(command, options);
  command.get_option("--adapter")->required(false);  // --run-id has both folders
  command.add_option("--base", options.base, "Folder of the base model");
  add_tuned_run_options(command, options.tuned, "Merge the best adapter of this run, or latest, into its base model");
  command.add_flag_callback(
      "--parity", [&options] { options.logits = jobs::CompareLogits::yes; },
      "Compare logits, hidden states and greedy text, too, as `parity` does");
  add_prompt_option(command, options.prompts);
  command.add_flag("--allow-unchecked", options.allow_unchecked,
                   "Release the merged model even if memory does not suffice for this comparison");
}

CountProgress comparison_progress(ProgressLine& line) {
  return [&](long done, long total) {
    line.update("comparing the merged model with base and adapter: " + std::to_string(100 * done / total) + " %");
  };
}

// Completes base and adapter from --run-id.
MergeOptions with_folders(const CommonOptions& common, MergeOptions options) {
  if (!options.tuned.run.empty() && options.adapter.empty()) {
    options.adapter = tuned_model(common, options.tuned);
    const store::Store store(common.runs_folder);
    if (const auto offer = launch::merge_offer(store, run_of(common, options.tuned)); offer && options.base.empty())
      options.base = offer->base;
  }
  if (options.base.empty() || options.adapter.empty())
    throw Error("USAGE", "merge needs a base model and an adapter",
                {.place = options.base.empty() ? "--base" : "--adapter",
                 .fix = "give --base and --adapter, or --run-id of a run that trained an adapter"});
  return options;
}

int run_merge(const CommonOptions& common, const MergeOptions& given) {
  const MergeOptions options = with_folders(common, given);
  ProgressLine line;
  const auto unchecked = options.allow_unchecked ? jobs::UncheckedMerge::released : jobs::UncheckedMerge::kept_aside;
  const jobs::MergeResult result = jobs::merge_adapter(
      {options.base, options.adapter, options.out, options.alpha, options.prompts, unchecked, options.logits},
      print_note,
      [&](long done, long total) {
        line.update("merging and checking: " + std::to_string(100 * done / std::max(1L, total)) + " %");
      },
      comparison_progress(line), common.stop);
  line.clear();
  if (common.output == Output::json)
    print_json(result.answer);
  else
    print_text("%ld of %s merged, %s\n%s\n%s%s\n", result.merged.merged,
               counted(result.merged.tensors, "tensor").c_str(), to_text(result.merged.written).c_str(),
               train::check_text(result.check).c_str(),
               result.parity.forms.empty() ? "" : train::parity_text(result.parity).c_str(),
               jobs::released_text(result).c_str());
  if (common.stop.stop_requested()) return exit_code(RunState::cancelled);
  return result.is_released ? 0 : 1;
}

struct ParityOptions {
  std::filesystem::path base{}, adapter{}, merged{};
  std::optional<float> alpha{};
  std::vector<std::string> prompts{};
};

void add_parity_options(CLI::App& command, CommonOptions&, ParityOptions& options) {
  command.add_option("--base", options.base, "Folder of the base model")->required();
  command.add_option("--adapter", options.adapter, "PEFT folder, or Orbax checkpoint of a Tunix run")->required();
  command.add_option("--merged", options.merged, "Folder of the merged model")->required();
  command.add_option("--alpha", options.alpha, "LoRA alpha, for an Orbax checkpoint that does not contain it");
  add_prompt_option(command, options.prompts);
}

int run_parity(const CommonOptions& common, const ParityOptions& options) {
  ProgressLine line;
  const train::Parity parity =
      jobs::check_merged({options.base, options.adapter, options.merged, options.alpha, options.prompts}, print_note,
                         comparison_progress(line), common.stop);
  line.clear();
  print_answer(common, train::to_json(parity), train::parity_text(parity));
  return parity.verdict == train::ParityVerdict::passed ? 0 : 1;
}

}  // namespace

Subcommand merge_subcommand() {
  return make_subcommand("merge", "Merge an adapter into its base model and write a Hugging Face folder",
                         add_merge_options, run_merge);
}

Subcommand parity_subcommand() {
  return make_subcommand("parity", "Compare a merged model with its base model and adapter", add_parity_options,
                         run_parity);
}

}  // namespace mw::app
