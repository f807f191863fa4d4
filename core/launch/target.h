// SPDX-License-Identifier: Apache-2.0
// Targets of a launch (option --on) and the program that runs a command there. Errors are LAUNCH-TARGET. Thread-safe.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::launch {

enum class Where { local, ssh, command };
// The program of the recipe that starts it on several hosts: on_hosts.py from here over ssh, slurm.sh at a login node,
// or sky.sh or jobset.sh from here.
enum class Launcher { none, hosts, slurm, skypilot, kubernetes };

struct LaunchTarget {
  Where where = Where::local;
  std::string text;                    // as given by the user: "ssh:me@host:2222"
  std::string host{}, port{};          // for ssh
  std::string cluster{};               // for Launcher::skypilot; empty: that of sky.sh
  std::string name_space{};            // for Launcher::kubernetes; empty: that of kubectl's context
  std::string command{};               // local shell command; {command} is the remote command as one quoted word
  std::filesystem::path ssh_config{};  // empty: the user's configuration
  Launcher launcher = Launcher::none;
  std::filesystem::path hosts_file{};  // absolute, for Launcher::hosts; empty: `command` reaches each of `workers`
  int workers = 0;                     // with {worker} in `command`
};

// resources/launch/<name>.txt: a local shell command with {command} and fields {field} or {field=default}.
struct TargetTemplate {
  struct Field {
    std::string name;
    std::optional<std::string> fallback;
  };
  std::string name, about, command;
  std::vector<Field> fields;
};
std::vector<TargetTemplate> load_templates(const std::filesystem::path& folder);  // sorted by name

// `text` is local, ssh:[USER@]HOST[:PORT], hosts:FILE, slurm or slurm:[USER@]HOST[:PORT] (its login node),
// skypilot or skypilot:CLUSTER, kubernetes or kubernetes:NAMESPACE, NAME:field=value,... for a template, or a command
// with {command}.
LaunchTarget parse_target(std::string_view text, const std::filesystem::path& templates_folder);

// The shell command that starts the recipe in its folder: ./launch.sh, or the target's launcher.
std::string start_command(const LaunchTarget& target);

// Program and arguments that run `script`, one line of POSIX shell, on the target. Only templates and commands of the
// user go through a local shell.
std::vector<std::string> command_line(const LaunchTarget& target, const std::string& script);

}  // namespace mw::launch

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::launch::Where>{"local", "ssh", "command"};
