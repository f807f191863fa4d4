// SPDX-License-Identifier: GPL-3.0-or-later
// `bundle`: runs as one file that another Meshwright imports.
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/import/bundle.h"

namespace mw::app {
namespace {

struct BundleOptions {
  std::vector<std::string> runs{};
  std::filesystem::path out{};
  importing::BundledCheckpoints checkpoints = importing::BundledCheckpoints::none;
};

void add_bundle_options(CLI::App& command, CommonOptions&, BundleOptions& options) {
  command.add_option("runs", options.runs, "Ids of ended runs, listed by `runs`, or latest")->required();
  command.add_option("--out", options.out, "File for the bundle: NAME.meshwright.tar.zst")->required();
  command.add_flag_callback(
      "--with-checkpoints", [&options] { options.checkpoints = importing::BundledCheckpoints::all; },
      "Include the files of the runs' checkpoints");
}

int run_bundle(const CommonOptions& common, const BundleOptions& options) {
  const store::Store store(common.runs_folder);
  std::vector<store::RunId> runs;
  for (const std::string& name : options.runs) runs.push_back(run_named(store, name));
  const importing::BundleContents contents =
      importing::write_bundle(store, runs, options.out, options.checkpoints, common.stop);
  print_answer(common,
               {{"file", options.out.string()},
                {"runs", contents.runs},
                {"events", contents.events_of},
                {"checkpoint_files", contents.files},
                {"checkpoint_bytes", contents.bytes}},
               options.out.string() + "\n");
  return 0;
}

}  // namespace

Subcommand bundle_subcommand() {
  return make_subcommand("bundle", "Write runs as one file that another Meshwright imports", add_bundle_options,
                         run_bundle);
}

}  // namespace mw::app
