// SPDX-License-Identifier: GPL-3.0-or-later
// `export EXP --recipe KIND --out DIR`: a folder that runs the experiment elsewhere.
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/jobs/recipe_export.h"

namespace mw::app {

int export_command(const Common& common, const ExportArgs& args) {
  const recipes::Kind kind = recipes::recipe_kind(args.recipe);
  const auto templates = std::filesystem::path(MW_RESOURCES) / "recipes";
  ProgressLine line;
  const recipes::Subject subject = jobs::recipe_subject(
      kind, load_experiment(common), load_catalogue(), templates, common.stop, [&](long done, long total) {
        line.update("reading data: " + std::to_string(done) + " of " + std::to_string(total));
      });
  const auto files = recipes::write_recipe(subject, templates, args.out,
                                           args.force ? recipes::Overwrite::changed_files : recipes::Overwrite::refuse);
  line.clear();
  if (common.output == Output::json) {
    print_json({{"recipe", args.recipe}, {"out", args.out.string()}, {"files", files}, {"remarks", subject.remarks}});
    return 0;
  }
  print_text("%s: %zu files in %s\n", std::string(recipes::described(kind)).c_str(), files.size(), args.out.c_str());
  for (const std::string& remark : subject.remarks) print_text("- %s\n", remark.c_str());
  return 0;
}

}  // namespace mw::app
