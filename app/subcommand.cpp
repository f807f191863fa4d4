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

int exit_code(RunState state, std::optional<Error::Kind> error) {
  if (state == RunState::cancelled) return 130;
  if (state == RunState::done) return 0;
  return error == Error::Kind::bad_input ? 2 : 1;
}

Error unknown_run(const std::filesystem::path& store_folder, const std::string& name, const std::string& expected) {
  return Error({.id = "RUN-UNKNOWN",
                .message = "no run or file has this name",
                .file = store_folder.string(),
                .found = name,
                .expected = expected});
}

}  // namespace mw::app
