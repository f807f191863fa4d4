// SPDX-License-Identifier: GPL-3.0-or-later
// `completion` and `man-page`: completions of shells and the manual page, written from the parser itself.
#include <CLI/CLI.hpp>

#include "app/command_description.h"
#include "app/output.h"
#include "core/experiment/parameters.h"

namespace mw::app {
namespace {

CommandDescription describe_program() {
  CommonOptions common;
  StartRun start = StartRun::no;
  CLI::App root;
  const std::vector<Subcommand> subcommands = all_subcommands();
  add_command_line(root, subcommands, common, start);
  return describe_command(root);
}

struct CompletionOptions {
  std::string shell;
};

void add_completion_options(CLI::App& command, CommonOptions&, CompletionOptions& options) {
  // The type lists the choices for help and completions. They are checked below, with an error in the usual form.
  command.add_option("shell", options.shell, "bash, zsh or fish")->required()->type_name("TEXT:{bash,zsh,fish}");
}

Shell parse_shell(const std::string& name) {
  if (const auto shell = parse<Shell>(name)) return *shell;
  throw Error("USAGE", "there are no completions for this shell",
              {.place = "shell",
               .found = name,
               .expected = "bash, zsh or fish",
               .fix = "run meshwright completion with one of these names"});
}

// Scripts and pages are printed as they are: text of ours, without any of a file.
int print_script(const CommonOptions& common, const std::string& text) {
  if (common.output == Output::json) {
    print_json({{"text", text}});
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

int print_completion(const CommonOptions& common, const CompletionOptions& options) {
  std::vector<std::string> keys;
  for (const experiment::Parameter& parameter : experiment::parameters())
    if (!parameter.key.ends_with('*')) keys.push_back(parameter.key);
  return print_script(common, completion_script(parse_shell(options.shell), describe_program(), keys));
}

}  // namespace

Subcommand completion_subcommand() {
  return make_subcommand<CompletionOptions>("completion", "Print completions for a shell", add_completion_options,
                                            print_completion);
}

Subcommand man_page_subcommand() {
  return {
      .name = "man-page",
      .help = "Print the manual page",
      .add_options = [](CLI::App&, CommonOptions&) {},
      .run =
          [](const CommonOptions& common) { return print_script(common, man_page(describe_program(), MW_VERSION)); }};
}

}  // namespace mw::app
