// SPDX-License-Identifier: GPL-3.0-or-later
// Parses the command line, runs its subcommand and turns errors into exit codes.
#include <CLI/CLI.hpp>
#include <new>
#include <sstream>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/stop_signals.h"
#include "app/window.h"
#include "core/base/file_system.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/data/dataset/row_cache.h"
#include "core/engine/kernels/cpu.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

// Throws for a first word that is neither a subcommand nor a file: a misspelt subcommand, most likely.
void refuse_unknown_subcommand(const std::vector<Subcommand>& subcommands, const CommonOptions& common) {
  const std::string word = common.argc > 1 ? common.argv[1] : "";
  if (word.empty() || word[0] == '-' || word.find_first_of("/.") != std::string::npos || path_exists(word)) return;
  std::vector<std::string> names;
  for (const Subcommand& subcommand : subcommands) names.push_back(subcommand.name);
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  throw Error("USAGE", "unknown command '" + word + "'; did you mean '" + nearest_names(word, names, 1).at(0) + "'?");
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
  StartRun start = StartRun::no;
  const std::vector<Subcommand> subcommands = all_subcommands();
  CLI::App root{"Meshwright: design, run and compare fine-tuning and serving experiments with Gemma"};
  add_command_line(root, subcommands, common, start);

  refuse_unknown_subcommand(subcommands, common);
  if (const std::optional<int> code = parse(root, common)) return *code;
  engine::usable_cpu();  // a wrong MESHWRIGHT_CPU ends every command at its start
  keep_private(common.runs_folder);
  data::set_row_cache({.folder = common.runs_folder / data::kRowCacheFolder});
  for (const Subcommand& subcommand : subcommands) {
    if (!root.got_subcommand(subcommand.name)) continue;
    if (!subcommand.stops_cleanly) return subcommand.run(common);
    const StopSignals signals;
    common.stop = signals.token();
    return subcommand.run(common);
  }
  return has_display() ? open_window(common, start) : run_without_display(common);
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
