// SPDX-License-Identifier: Apache-2.0
// Where a recipe is to run, as --on says it, and the program that takes a command there. Plain values; any thread.
// Errors: LAUNCH-TARGET.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mw::launch {

enum class Where { local, ssh, command };

struct Target {
  Where where = Where::local;
  std::string text;                    // as it was given: "ssh:me@host:2222"
  std::string host{}, port{};          // of ssh
  std::string command{};               // of the local shell; {command} is what is to be run there, as one quoted word
  std::filesystem::path ssh_config{};  // instead of the user's own; empty: that
};

// resources/launch/<name>.txt: a command of the local shell with {field} or {field=default}, besides {command}.
struct Template {
  struct Field {
    std::string name;
    std::optional<std::string> fallback;
  };
  std::string name, about, command;
  std::vector<Field> fields;
};
std::vector<Template> templates(const std::filesystem::path& folder);  // by name

// local; ssh:[USER@]HOST[:PORT]; NAME:field=value,... of a template; or a command with {command} in it.
Target parse_target(std::string_view text, const std::filesystem::path& templates_folder);

// Program and arguments that run `script`, one line of POSIX shell, there. Nothing goes through a local shell but the
// user's own template.
std::vector<std::string> command_line(const Target& target, const std::string& script);

}  // namespace mw::launch
