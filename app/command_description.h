// SPDX-License-Identifier: GPL-3.0-or-later
// The command line as a value, read from its parser: man page and completions of shells are written from it.
#pragma once
#include <string>
#include <vector>

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

}  // namespace mw::app
