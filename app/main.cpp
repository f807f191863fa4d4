// SPDX-License-Identifier: GPL-3.0-or-later
// Lists the subcommands, parses the command line and turns errors into exit codes.
#include <CLI/CLI.hpp>
#include <new>
#include <sstream>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/stop_signals.h"
#include "app/subcommand.h"
#include "app/window.h"
#include "core/base/file_system.h"
#include "core/base/files.h"
#include "core/base/nearest_names.h"
#include "core/data/dataset/row_cache.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

std::vector<Subcommand> all_subcommands() {  // in the order of --help
  return {run_subcommand(),     plan_subcommand(),      search_subcommand(),   size_subcommand(),
          sweep_subcommand(),   generate_subcommand(),  serve_subcommand(),    calibrate_subcommand(),
          import_subcommand(),  accuracy_subcommand(),  audit_subcommand(),    compare_subcommand(),
          export_subcommand(),  port_subcommand(),      envelope_subcommand(), cost_subcommand(),
          replay_subcommand(),  residuals_subcommand(), verify_subcommand(),   merge_subcommand(),
          parity_subcommand(),  convert_subcommand(),   watch_subcommand(),    launch_subcommand(),
          inspect_subcommand(), tokens_subcommand(),    runs_subcommand(),     tour_subcommand()};
}

// Throws for a first word that is neither a subcommand nor a file: a misspelt subcommand, most likely.
void refuse_unknown_subcommand(const std::vector<Subcommand>& subcommands, const CommonOptions& common) {
  const std::string word = common.argc > 1 ? common.argv[1] : "";
  if (word.empty() || word[0] == '-' || word.find_first_of("/.") != std::string::npos || path_exists(word)) return;
  std::vector<std::string> names;
  for (const Subcommand& subcommand : subcommands) names.push_back(subcommand.name);
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  throw Error(
      {.id = "USAGE",
       .message = "unknown command '" + word + "'; did you mean '" + nearest_names(word, names, 1).at(0) + "'?"});
}

void add_root_options(CLI::App& root, CommonOptions& common, bool& start_run) {
  root.set_version_flag("--version", MW_VERSION);
  root.require_subcommand(0, 1);
  add_runs_dir_option(root, common);
  root.add_flag("--run", start_run, "Start the run when the window opens");
  root.footer("Without a subcommand the window opens, with the experiment FILE if one is given.");
}

void add_subcommand(CLI::App& root, const Subcommand& subcommand, CommonOptions& common) {
  CLI::App* command = root.add_subcommand(subcommand.name, subcommand.help);
  command->add_flag_callback(
      "--json", [&common] { common.output = Output::json; }, "Print JSON on standard output, and nothing else");
  add_runs_dir_option(*command, common);
  subcommand.add_options(*command, common);
}

// Returns the exit code if parsing ends the process (--help, --version, bad usage).
std::optional<int> parse(CLI::App& root, const CommonOptions& common) {
  try {
    root.parse(common.argc, common.argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = root.exit(error, out, err);
    print_text("%s", out.str().c_str());
    print_error("%s", err.str().c_str());
    return code == 0 ? 0 : 2;
  }
}

int run_without_display(CommonOptions common) {
  print_error("No display: running %s instead of opening the window.\n",
              common.file.empty() ? "the default example" : common.file.c_str());
  if (common.file.empty()) common.file = example_file("tiny-lora.json");
  const StopSignals signals;
  common.stop = signals.token();
  return run_subcommand().run(common);
}

int run_main(int argc, char** argv) {
  survive_file_size_limit();
  CommonOptions common{.runs_folder = store::default_folder(), .argc = argc, .argv = argv};
  bool start_run = false;
  const std::vector<Subcommand> subcommands = all_subcommands();
  CLI::App root{"Meshwright: design, run and compare fine-tuning and serving experiments with Gemma", "meshwright"};
  add_root_options(root, common, start_run);
  for (const Subcommand& subcommand : subcommands) add_subcommand(root, subcommand, common);
  // Declared last: names of subcommands take precedence over a file.
  root.add_option("file", common.file, "Experiment to open in the window");

  refuse_unknown_subcommand(subcommands, common);
  if (const std::optional<int> code = parse(root, common)) return *code;
  keep_private(common.runs_folder);
  data::set_row_cache({.folder = common.runs_folder / data::kRowCacheFolder});
  for (const Subcommand& subcommand : subcommands) {
    if (!root.got_subcommand(subcommand.name)) continue;
    if (!subcommand.stops_cleanly) return subcommand.run(common);
    const StopSignals signals;
    common.stop = signals.token();
    return subcommand.run(common);
  }
  return has_display() ? open_window(common, start_run) : run_without_display(common);
}

int report(const Error& error) {
  print_error("meshwright: %s\n", error.what());
  return exit_code(error.kind() == Error::Kind::cancelled ? RunState::cancelled : RunState::failed, error.kind());
}

}  // namespace
}  // namespace mw::app

int main(int argc, char** argv) {
  try {
    return mw::app::run_main(argc, argv);
  } catch (const mw::Error& error) {
    return mw::app::report(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return mw::app::report(mw::system_error("file access failed", error.path1().string(), error.code().value()));
  } catch (const std::bad_alloc&) {
    mw::app::print_error("meshwright: out of memory\n");
  } catch (const std::exception& error) {
    mw::app::print_error("meshwright: unexpected failure: %s\n", error.what());
  }
  return 1;
}
