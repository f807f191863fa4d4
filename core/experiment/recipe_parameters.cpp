// SPDX-License-Identifier: Apache-2.0
// The rows of the parameter table that recipes for other machines and the checker read.
#include "core/experiment/parameter_rows.h"

namespace mw::experiment::rows {

Rows recipe_rows() {
  return {
      row(list, "stack.versions", "Versions", Json::array(),
          "Packages that training elsewhere uses, as pip freeze prints them: qwix==0.1.8, flax==0.12.5", kAdvanced),
      row(list, "stack.model_config", "Model config", Json::array(),
          "Fields of Tunix's ModelConfig that the recipe replaces: num_embed=262208", kAdvanced),
      choice_row("stack.add_bos", "Add <bos>", {"auto", "always", "never"},
                 "Whether the tokenizer there puts <bos> before the text, whatever the template does", kAdvanced),
      choice_row("stack.rendering", "Rendering", {"prompt_and_answer", "conversation"},
                 "Training text there: the generation prompt and the answer, or the template over the conversation",
                 kAdvanced),
  };
}

Rows export_rows() {
  return {
      choice_row("export.merge", "Merge", {"none", "tunix", "meshwright"},
                 "Who writes merged weights after training: nobody, Tunix's exporter, or this program", kAdvanced),
      path_row("export.out", "Into", "Folder for the merged weights", kAdvanced),
      int_row("export.rank", "Rank told", "", 0, {0, 4096}, "Rank the exporter is told; 0: the training's", kAdvanced),
      real_row("export.alpha", "Alpha told", "", 0, {0, 65536}, "Alpha the exporter is told; 0: the training's",
               kAdvanced),
      choice_row("export.serve_as", "Served as", {"merged", "adapter"},
                 "Merged weights, or the base with the adapter beside it", kAdvanced),
  };
}

}  // namespace mw::experiment::rows
