// SPDX-License-Identifier: GPL-3.0-or-later
// `residuals`: what was predicted for a run, minus what it measured, term by term.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/compare/residuals.h"

namespace mw::app {
namespace {

struct ResidualsOptions {
  std::string run{};
};

void add_residuals_options(CLI::App& command, CommonOptions&, ResidualsOptions& options) {
  command.add_option("run", options.run, "A run of the store, or latest")->required();
}

int run_residuals(const CommonOptions& common, const ResidualsOptions& options) {
  const store::Store store(common.runs_folder);
  const store::RunId run = run_named(store, options.run);
  if (!store.find(run)) throw unknown_run(store.folder(), run, "a run id listed by `runs`, or latest");
  const compare::Residuals residuals = compare::residuals(compare::compared(store, run), load_context(), common.stop);
  check_stop(common, "the comparison with the prediction");
  if (common.output == Output::json) {
    print_json(to_json(residuals));
    return 0;
  }
  print_text("%s", to_text(residuals).c_str());
  return 0;
}

}  // namespace

Subcommand residuals_subcommand() {
  return make_subcommand("residuals", "Show predicted minus measured for each term of a run", add_residuals_options,
                         run_residuals);
}

}  // namespace mw::app
