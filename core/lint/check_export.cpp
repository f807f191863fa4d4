// SPDX-License-Identifier: Apache-2.0
// Rules about merging adapters into weights after training: EXP.
#include <cmath>

#include "core/base/counted.h"
#include "core/lint/rules.h"

namespace mw::lint {
namespace {

Fix merge_here() {
  return {"Merge with Meshwright", "", {{"export.merge", "meshwright"}}};
}

bool tunix_merges(const CheckInput& input) {
  return input.exported.merge == options::MergeTool::tunix && input.lora.has_value();
}

void exp_1(const CheckInput& input, const RuleReport& report) {
  if (!tunix_merges(input)) return;
  Finding finding{.place = "export.merge"};
  finding.fixes = {merge_here()};
  if (input.config.family != model::Family::gemma3) {
    finding.message = "Tunix has no merge of adapters for this family";
    finding.found = input.config.id;
    finding.expected = "Gemma 3 (text) or Qwen3";
  } else if (input.config.hf_prefix != "model.") {
    finding.message = "Tunix's merge reads keys that start with model.layers, not a multimodal base";
    finding.found = input.config.hf_prefix;
    finding.expected = "model.";
  } else if (input.checkpoint && input.checkpoint->files > 1) {
    finding.message = "Tunix's merge reads one model.safetensors, not a sharded base";
    finding.found = counted(input.checkpoint->files, "file");
    finding.expected = "1";
  } else {
    if (!input.checkpoint) report.unchecked("whether the base is in one file (model.path)");
    return;
  }
  report.add(std::move(finding));
}

void exp_2(const CheckInput& input, const RuleReport& report) {
  if (!tunix_merges(input)) return;
  if (input.exported.out.empty() || !input.export_folder_used)
    return report.unchecked("the folder that is written (export.out)");
  if (!*input.export_folder_used) return;
  report.add(
      {.message = "Tunix's merge deletes everything in this folder first",
       .place = "export.out",
       .found = input.exported.out.string(),
       .expected = "a folder that is empty or does not exist",
       .fixes = {{"Use another folder", "", {{"export.out", input.exported.out.string() + "-merged"}}}, merge_here()}});
}

void exp_3(const CheckInput& input, const RuleReport& report) {
  if (input.exported.merge == options::MergeTool::none || !input.lora) return;
  const options::Lora& lora = input.lora->options;
  const int rank = input.exported.rank > 0 ? input.exported.rank : lora.rank;
  const double alpha = input.exported.alpha > 0 ? input.exported.alpha : lora.alpha;
  const double merged = alpha / rank, trained = lora.alpha / lora.rank;
  if (std::abs(merged - trained) < 1e-9 && rank == lora.rank) return;
  report.add(
      {.message = "the exporter's rank or alpha differs from the training's",
       .place = "export.alpha",
       .found = "alpha " + number_text(alpha) + ", rank " + std::to_string(rank),
       .expected = "alpha " + number_text(lora.alpha) + ", rank " + std::to_string(lora.rank),
       .fixes = {{"Use the training's rank and alpha", "", {{"export.rank", nullptr}, {"export.alpha", nullptr}}}}});
}

void exp_4(const CheckInput& input, const RuleReport& report) {
  const VersionQuestion right{"google-tunix", "0.1.8", "whether transposed arrays are written right"};
  if (!tunix_merges(input) || !is_older(input, right, report)) return;
  report.add(
      {.message =
           "this version of Tunix passes transposed arrays to safetensors.numpy, which writes them in the wrong layout",
       .place = "export.merge",
       .found = "google-tunix " + input.versions.at("google-tunix"),
       .expected = "0.1.8 or newer",
       .fixes = {merge_here(), {"Use google-tunix 0.1.8", "", {set_version(input, "google-tunix", "0.1.8")}}}});
}

}  // namespace

std::vector<CheckRule> export_rules() {
  const std::vector<model::Stack> tunix{model::Stack::tunix};
  return {
      {"EXP-1", Severity::error, tunix, "Tunix's merge for a base it cannot merge into",
       "save_lora_merged_model_as_safetensors exists for Gemma 3 text and Qwen3 only, with one model.safetensors.",
       "tunix/models/gemma3/params.py, tunix/models/safetensors_saver.py; google-deepmind/gemma#254", exp_1},
      {"EXP-2", Severity::error, tunix, "The export's folder is not empty", "The exporter deletes it before it writes.",
       "tunix/models/safetensors_saver.py", exp_2},
      {"EXP-3", Severity::error, kAllStacks, "The exporter's rank or alpha is not the training's",
       "The exporter does not compare them with the training; a wrong scale is merged without a warning.",
       "tunix/models/safetensors_saver.py", exp_3},
      {"EXP-4", Severity::error, tunix, "Arrays that are not contiguous go to safetensors.numpy",
       "It writes the memory in its physical order, so transposed weights are scrambled. Load the files again to "
       "verify them.",
       "tunix 9111c9e1 (2026-07-10, after v0.1.7); google/tunix#971", exp_4},
  };
}

}  // namespace mw::lint
