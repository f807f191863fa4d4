// SPDX-License-Identifier: GPL-3.0-or-later
// The subcommands of the command line, and what several of them share: options and exit codes.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/formats/results/bench_import.h"

namespace CLI {
class App;
}

namespace mw::app {

enum class Output { text, json };
enum class StartRun { no, yes };  // --run: start the run when the window opens

struct CommonOptions {
  Output output = Output::text;
  std::vector<std::string> sets{};      // --set key=value, in the order given
  std::filesystem::path runs_folder{};  // the run store
  std::filesystem::path file{};         // the positional argument FILE; empty if it was omitted
  std::stop_token stop{};               // stop requests by signals (StopSignals)
  int argc = 0;                         // arguments of main(), for QApplication
  char** argv = nullptr;
};

struct Subcommand {
  std::string name;
  std::string help;
  // Declares the options; parsing then fills `common` and the values that `run` reads.
  std::function<void(CLI::App& command, CommonOptions& common)> add_options;
  // Returns the exit code of the process. Throws mw::Error.
  std::function<int(const CommonOptions& common)> run;
  std::string heading{};      // of --help
  bool stops_cleanly = true;  // false: signals end the process at once, StopSignals is not installed
};

// Makes a subcommand whose options are parsed into an `Options` that `run` receives.
template <typename Options>
Subcommand make_subcommand(const char* name, const char* help,
                           void (*add_options)(CLI::App& command, CommonOptions& common, Options& options),
                           int (*run)(const CommonOptions& common, const Options& options)) {
  const auto options = std::make_shared<Options>();
  return {.name = name,
          .help = help,
          .add_options = [=](CLI::App& command, CommonOptions& common) { add_options(command, common, *options); },
          .run = [=](const CommonOptions& common) { return run(common, *options); }};
}

void add_runs_dir_option(CLI::App& command, CommonOptions& common);
void check_stop(const CommonOptions& common, const char* work);  // throws cancelled(work) after a stop request

enum class FileArgument { required, optional };
// Declares the positional argument FILE and --set.
void add_file_and_set_options(CLI::App& command, CommonOptions& common, const char* help = "Experiment file",
                              FileArgument presence = FileArgument::required);

// --column, which maps columns of a CSV file to vLLM's field names.
void add_column_option(CLI::App& command, std::vector<std::string>& columns);
// Parses FIELD=COLUMN entries; throws Error USAGE.
formats::CsvMapping csv_mapping(const std::vector<std::string>& columns);

struct AdapterOptions {  // of `merge` and `convert`
  std::filesystem::path base{}, adapter{}, out{};
  std::optional<float> alpha{};  // LoRA alpha of an Orbax checkpoint
};
void add_adapter_options(CLI::App& command, AdapterOptions& options);

// Exit code of a run; `error` tells bad input from other failures.
int exit_code(RunState state, std::optional<Error::Kind> error = {});

// Error RUN-UNKNOWN for a name that is neither a run of the store nor a file.
Error unknown_run(const std::filesystem::path& store_folder, const std::string& name, const std::string& expected);

// The subcommands, each defined in the file of its name (audit_command.cpp).
Subcommand accuracy_subcommand();
Subcommand audit_subcommand();
Subcommand bench_subcommand();
Subcommand bundle_subcommand();
Subcommand calibrate_subcommand();
Subcommand compare_subcommand();
Subcommand completion_subcommand();
Subcommand convert_subcommand();
Subcommand cost_subcommand();
Subcommand envelope_subcommand();
Subcommand export_subcommand();
Subcommand generate_subcommand();
Subcommand import_subcommand();
Subcommand inspect_subcommand();
Subcommand launch_subcommand();
Subcommand man_page_subcommand();
Subcommand merge_subcommand();
Subcommand models_subcommand();
Subcommand parity_subcommand();
Subcommand plan_subcommand();
Subcommand port_subcommand();
Subcommand replay_subcommand();
Subcommand residuals_subcommand();
Subcommand report_subcommand();
Subcommand run_subcommand();
Subcommand runs_subcommand();
Subcommand schema_subcommand();
Subcommand search_subcommand();
Subcommand serve_subcommand();
Subcommand size_subcommand();
Subcommand sweep_subcommand();
Subcommand tokens_subcommand();
Subcommand tour_subcommand();
Subcommand tune_subcommand();
Subcommand verify_subcommand();
Subcommand watch_subcommand();

// All of them, in the order of --help.
std::vector<Subcommand> all_subcommands();

// Makes the parser of the whole command line, which writes into `common` and `start`; both must outlive it.
void add_command_line(CLI::App& root, const std::vector<Subcommand>& subcommands, CommonOptions& common,
                      StartRun& start);

}  // namespace mw::app
