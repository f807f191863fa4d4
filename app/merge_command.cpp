// SPDX-License-Identifier: GPL-3.0-or-later
// `merge`: merges an adapter into its base model and verifies the result by comparing logits.
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "app/progress.h"
#include "app/subcommand.h"
#include "core/jobs/merge_adapter.h"

namespace mw::app {
namespace {

void add_merge_options(CLI::App& command, CommonOptions&, AdapterOptions& options) {
  add_adapter_options(command, options);
  command.add_option("--base", options.base, "Folder of the base model")->required();
}

int run_merge(const CommonOptions& common, const AdapterOptions& options) {
  ProgressLine line;
  const auto [merged, parity, answer] = jobs::merge_adapter(
      {options.base, options.adapter, options.out, options.alpha}, print_note,
      [&](long done, long total) {
        line.update("merging " + std::to_string(done) + " of " + std::to_string(total) + " MiB");
      },
      [&](long done, long total) {
        line.update("comparing the merged model with base and adapter: " + std::to_string(100 * done / total) + " %");
      },
      common.stop);
  line.clear();
  if (common.output == Output::json)
    print_json(answer);
  else
    print_text("%ld of %ld tensors merged, %s in %s\nparity %s%s%s\n", merged.merged, merged.tensors,
               to_text(merged.written).c_str(), options.out.c_str(), std::string(to_string(parity.verdict)).c_str(),
               parity.reason.empty() ? "" : ": ", parity.reason.c_str());
  return parity.verdict == train::Parity::Verdict::failed ? 1 : 0;
}

}  // namespace

Subcommand merge_subcommand() {
  return make_subcommand("merge", "Merge an adapter into its base model and write a Hugging Face folder",
                         add_merge_options, run_merge);
}

}  // namespace mw::app
