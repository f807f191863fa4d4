// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/subcommand.h"

#include <CLI/CLI.hpp>

namespace mw::app {

void add_runs_dir_option(CLI::App& command, CommonOptions& common) {
  command.add_option_function<std::string>(
      "--runs-dir",
      [&common](const std::string& folder) {
        if (folder.empty()) throw CLI::ValidationError("--runs-dir", "the folder name is empty");
        common.runs_folder = folder;
      },
      "Folder of the run store");
}

void add_file_and_set_options(CLI::App& command, CommonOptions& common, const char* help, FileArgument presence) {
  command.add_option("file", common.file, help)->required(presence == FileArgument::required);
  command.add_option("--set", common.sets, "key=value: overrides an experiment key (repeatable)")
      ->allow_extra_args(false);
}

void add_column_option(CLI::App& command, std::vector<std::string>& columns) {
  command.add_option("--column", columns, "FIELD=COLUMN: the CSV column that holds vLLM's FIELD (repeatable)")
      ->allow_extra_args(false);
}

formats::CsvMapping csv_mapping(const std::vector<std::string>& columns) {
  formats::CsvMapping mapping;
  for (const std::string& column : columns) {
    const size_t equals = column.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == column.size())
      throw Error("USAGE", "a column mapping needs a field and a column",
                  {.place = "--column", .found = column, .expected = "FIELD=COLUMN, e.g. median_ttft_ms=TTFT"});
    mapping.columns[column.substr(0, equals)] = column.substr(equals + 1);
  }
  return mapping;
}

void add_adapter_options(CLI::App& command, AdapterOptions& options) {
  command.add_option("--adapter", options.adapter, "PEFT folder, or an Orbax checkpoint saved by Tunix")->required();
  command.add_option("--out", options.out, "Output folder: new or empty")->required();
  command.add_option("--alpha", options.alpha, "LoRA alpha, which Orbax checkpoints do not record")
      ->check(CLI::PositiveNumber);
}

void check_stop(const CommonOptions& common, const char* work) {
  if (common.stop.stop_requested()) throw cancelled(work);
}

int exit_code(RunState state, std::optional<Error::Kind> error) {
  if (state == RunState::cancelled) return 130;
  if (state == RunState::done) return 0;
  return error == Error::Kind::bad_input ? 2 : 1;
}

Error unknown_run(const std::filesystem::path& store_folder, const std::string& name, const std::string& expected) {
  return Error("RUN-UNKNOWN", "no run or file has this name",
               {.file = store_folder.string(), .found = name, .expected = expected});
}

namespace {

void add_subcommand(CLI::App& root, const Subcommand& subcommand, CommonOptions& common) {
  CLI::App* command = root.add_subcommand(subcommand.name, subcommand.help)->group(subcommand.heading);
  command->add_flag_callback(
      "--json", [&common] { common.output = Output::json; }, "Print JSON on standard output, and nothing else");
  add_runs_dir_option(*command, common);
  subcommand.add_options(*command, common);
}

}  // namespace

std::vector<Subcommand> all_subcommands() {
  std::vector<Subcommand> all;
  const auto add = [&](const char* heading, std::initializer_list<Subcommand (*)()> subcommands) {
    for (const auto& make : subcommands) {
      all.push_back(make());
      all.back().heading = heading;
    }
  };
  add("Design", {plan_subcommand, search_subcommand, size_subcommand, envelope_subcommand, cost_subcommand,
                 port_subcommand, bench_subcommand, calibrate_subcommand, accuracy_subcommand});
  add("Train", {run_subcommand, tune_subcommand, generate_subcommand, tokens_subcommand, merge_subcommand,
                parity_subcommand, export_subcommand, launch_subcommand, watch_subcommand});
  add("Serve", {serve_subcommand, sweep_subcommand, replay_subcommand});
  add("Compare", {runs_subcommand, compare_subcommand, residuals_subcommand, audit_subcommand, report_subcommand,
                  verify_subcommand});
  add("Files", {inspect_subcommand, models_subcommand, import_subcommand, bundle_subcommand, convert_subcommand,
                schema_subcommand, completion_subcommand, man_page_subcommand, tour_subcommand});
  return all;
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
