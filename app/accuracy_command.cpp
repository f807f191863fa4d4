// SPDX-License-Identifier: GPL-3.0-or-later
// `accuracy`: every published measurement, predicted, with its error and interval.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/audit/accuracy.h"
#include "core/audit/calibrating.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

struct AccuracyOptions {
  std::string stack{}, chip{}, kind{};
  bool markdown = false;
};

void add_accuracy_options(CLI::App& command, CommonOptions&, AccuracyOptions& options) {
  command.add_option("--stack", options.stack, "Only rows of this software stack: maxtext, vllm-gpu ...");
  command.add_option("--chip", options.chip, "Only rows of this chip: h100, v6e ...");
  command.add_option("--kind", options.kind, "Only rows of this kind: training, memory, throughput, tpot or ttft");
  command.add_flag("--markdown", options.markdown, "Print the tables as Markdown");
}

int run_accuracy(const CommonOptions& common, const AccuracyOptions& options) {
  audit::AccuracyInput input{
      .resources = resources_folder(), .date = store::today_utc(), .filter = {options.stack, options.chip, {}}};
  if (!options.kind.empty()) {
    input.filter.kind = parse<plan::FigureKind>(options.kind);
    if (!input.filter.kind)
      throw Error("USAGE", "no such kind of figure",
                  {.place = "--kind", .found = options.kind, .expected = "training, memory, throughput, tpot or ttft"});
  }
  const audit::AccuracyReport report = audit::accuracy(input, load_context(), common.stop);
  print_answer(common, to_json(report), options.markdown ? audit::to_markdown(report) : to_text(report));
  return 0;
}

}  // namespace

Subcommand accuracy_subcommand() {
  return make_subcommand("accuracy", "Show predicted and measured values of every published measurement",
                         add_accuracy_options, run_accuracy);
}

}  // namespace mw::app
