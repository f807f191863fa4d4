// SPDX-License-Identifier: Apache-2.0
// Rows of the parameter table that recipe export and the checker use.
#include "core/experiment/parameter_rows.h"

namespace mw::experiment::rows {

Rows recipe_rows() {
  return {
      free_list("stack.versions", &StackSection::versions, "Versions", "", Json::array(),
                "Package versions for training on the target, as pip freeze prints them: qwix==0.1.8, flax==0.12.5"),
      free_list("stack.model_config", &StackSection::model_config, "Model config", "", Json::array(),
                "Fields of Tunix's ModelConfig that the recipe overrides: num_embed=262208"),
      choice_row("stack.add_bos", &StackSection::add_bos, "Add <bos>",
                 "Whether the target's tokenizer puts <bos> before the text, independent of the chat template",
                 kAdvanced),
      choice_row(
          "stack.rendering", &StackSection::rendering, "Rendering",
          "Training text on the target: the generation prompt and the answer, or the template over the conversation",
          kAdvanced),
  };
}

Rows export_rows() {
  return {
      choice_row("export.merge", &ExportSection::merge, "Merge",
                 "Tool that writes merged weights after training: none, Tunix's exporter, or Meshwright", kAdvanced),
      path_row("export.out", &ExportSection::out, "Output folder", "Folder for the merged weights", kAdvanced),
      int_row("export.rank", &ExportSection::rank, "Exporter rank", "", 0, {0, 4096},
              "Rank passed to the exporter; 0: the training rank", kAdvanced),
      real_row("export.alpha", &ExportSection::alpha, "Exporter alpha", "", 0, {0, 65536},
               "Alpha passed to the exporter; 0: the training alpha", kAdvanced),
      choice_row("export.serve_as", &ExportSection::serve_as, "Served as",
                 "Serve merged weights, or the base model with the adapter", kAdvanced),
  };
}

}  // namespace mw::experiment::rows
