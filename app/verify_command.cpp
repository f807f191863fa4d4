// SPDX-License-Identifier: GPL-3.0-or-later
// `verify`: recomputes the hash chain of a run's events and checkpoints.
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/store/chain.h"

namespace mw::app {
namespace {

struct VerifyOptions {
  std::string run;
};

int verify(const CommonOptions& common, const VerifyOptions& options) {
  const store::Store store(common.runs_folder);
  const store::RunId run = run_named(store, options.run);
  const store::ChainReport report = store::verify_chain(store, run, common.stop);
  print_answer(common, to_json(report, run), to_text(report, run) + "\n");
  return report.state == store::ChainState::intact ? 0 : 1;
}

}  // namespace

Subcommand verify_subcommand() {
  return make_subcommand<VerifyOptions>(
      "verify", "Verify that events and checkpoints of a run are as they were recorded",
      [](CLI::App& command, CommonOptions&, VerifyOptions& options) {
        command.add_option("run", options.run, "Id of the run, listed by `runs`, or latest")->required();
      },
      verify);
}

}  // namespace mw::app
