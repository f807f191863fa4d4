// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command_line.h"

namespace mw::app {
namespace {

void add_subcommand(CLI::App& root, const Subcommand& subcommand, CommonOptions& common) {
  CLI::App* command = root.add_subcommand(subcommand.name, subcommand.help);
  command->add_flag_callback(
      "--json", [&common] { common.output = Output::json; }, "Print JSON on standard output, and nothing else");
  add_runs_dir_option(*command, common);
  subcommand.add_options(*command, common);
}

}  // namespace

std::vector<Subcommand> all_subcommands() {
  return {run_subcommand(),      plan_subcommand(),      search_subcommand(),     size_subcommand(),
          sweep_subcommand(),    tune_subcommand(),      generate_subcommand(),   bench_subcommand(),
          serve_subcommand(),    calibrate_subcommand(), import_subcommand(),     accuracy_subcommand(),
          audit_subcommand(),    compare_subcommand(),   export_subcommand(),     port_subcommand(),
          envelope_subcommand(), cost_subcommand(),      replay_subcommand(),     residuals_subcommand(),
          verify_subcommand(),   merge_subcommand(),     parity_subcommand(),     convert_subcommand(),
          watch_subcommand(),    launch_subcommand(),    inspect_subcommand(),    tokens_subcommand(),
          runs_subcommand(),     models_subcommand(),    report_subcommand(),     bundle_subcommand(),
          tour_subcommand(),     schema_subcommand(),    completion_subcommand(), man_page_subcommand()};
}

void add_command_line(CLI::App& root, const std::vector<Subcommand>& subcommands, CommonOptions& common,
                      StartRun& start) {
  root.name("meshwright");
  root.set_version_flag("--version", MW_VERSION);
  root.require_subcommand(0, 1);
  add_runs_dir_option(root, common);
  root.add_flag_callback(
      "--run", [&start] { start = StartRun::yes; }, "Start the run when the window opens");
  root.footer("Without a subcommand the window opens, with the experiment FILE if one is given.");
  for (const Subcommand& subcommand : subcommands) add_subcommand(root, subcommand, common);
  // Declared last: names of subcommands take precedence over a file.
  root.add_option("file", common.file, "Experiment to open in the window");
}

}  // namespace mw::app
