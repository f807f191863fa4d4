// SPDX-License-Identifier: GPL-3.0-or-later
// The command line as a value, read from its parser: man page and completions of shells are written from it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/enum_names.h"

namespace CLI {
class App;
}

namespace mw::app {

struct OptionDescription {
  std::vector<std::string> names{};  // "-h", "--help"; empty for a positional argument
  std::string value{};               // "FILE", "TEXT"; empty for a flag
  std::vector<std::string> choices{};
  std::string help{};
  bool required = false;
};

struct CommandDescription {
  std::string name{};
  std::string help{};
  std::vector<OptionDescription> options{};  // positional arguments first
  std::vector<CommandDescription> commands{};
};

CommandDescription describe_command(const CLI::App& command);

// The manual page in section 1, in the man macros of groff. `version` is shown in its footer.
std::string man_page(const CommandDescription& program, const std::string& version);

enum class Shell { bash, zsh, fish };

// A script that completes commands, options, choices, files and the `keys` of --set ("train.steps").
std::string completion_script(Shell shell, const CommandDescription& program, std::span<const std::string> keys);

}  // namespace mw::app

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::app::Shell>{"bash", "zsh", "fish"};
