// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/shell_completion.h"

namespace mw::app {
namespace {

std::string join(std::span<const std::string> words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

std::vector<std::string> command_names(const CommandDescription& program) {
  std::vector<std::string> names;
  for (const CommandDescription& command : program.commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> option_names(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// In single quotes of a POSIX shell.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

// ---- bash ----

std::string bash_choices(const CommandDescription& command, const std::string& place) {
  std::string cases;
  for (const OptionDescription& option : command.options)
    if (!option.choices.empty())
      cases += "    " + place + ":" + join(option.names, "|" + place + ":") + ") words='" + join(option.choices, " ") +
               "' ;;\n";
  return cases;
}

std::string bash_script(const CommandDescription& program, std::span<const std::string> keys) {
  std::string options = "    *) options='" + join(option_names(program), " ") + "' ;;\n", choices;
  std::string by_command;
  for (const CommandDescription& command : program.commands) {
    by_command += "    " + command.name + ") options='" + join(option_names(command), " ") + "' ;;\n";
    choices += bash_choices(command, command.name);
  }
  return "# bash completion for " + program.name + ", written by `" + program.name + R"( completion bash`
_)" + program.name +
         R"(() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " )" +
         join(command_names(program), " ") + R"( " in
      *" ${COMP_WORDS[i]} "*) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  if [[ $before == --set ]]; then
    compopt -o nospace
    COMPREPLY=($(compgen -S = -W ')" +
         join(keys, " ") + R"(' -- "$current"))
    return
  fi
  case $command:$before in
)" + choices +
         R"(  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  case $command in
)" + by_command +
         options + R"(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  if [[ -z $command && $before != -* ]]; then
    COMPREPLY=($(compgen -W ')" +
         join(command_names(program), " ") + R"(' -- "$current"))
  fi
  compopt -o filenames
  COMPREPLY+=($(compgen -f -- "$current"))
}
complete -F _)" +
         program.name + " " + program.name + "\n";
}

// ---- zsh ----

// Text inside the brackets of an _arguments specification.
std::string zsh_text(const std::string& text) {
  return replaced(replaced(replaced(text, "\\", "\\\\"), "]", "\\]"), ":", "\\:");
}

std::string zsh_action(const OptionDescription& option, std::string_view keys_function) {
  if (!option.choices.empty()) return "(" + join(option.choices, " ") + ")";
  return option.names.size() == 1 && option.names[0] == "--set" ? std::string(keys_function) : "_files";
}

std::string zsh_arguments(const CommandDescription& command, std::string_view keys_function) {
  std::string specifications;
  int position = 0;
  for (const OptionDescription& option : command.options) {
    const std::string action = zsh_action(option, keys_function);
    if (option.names.empty())
      specifications += " \\\n    " + quoted(std::to_string(++position) + ":" + zsh_text(option.value) + ":" + action);
    for (const std::string& name : option.names)
      specifications +=
          " \\\n    " + quoted((option.value.empty() ? "" : "*") + name + "[" + zsh_text(option.help) + "]" +
                               (option.value.empty() ? "" : ":" + zsh_text(option.value) + ":" + action));
  }
  return specifications;
}

std::string zsh_script(const CommandDescription& program, std::span<const std::string> keys) {
  const std::string name = "_" + program.name, keys_function = name + "_keys";
  std::string commands, cases;
  for (const CommandDescription& command : program.commands) {
    commands += "    " + quoted(replaced(command.name, ":", "\\:") + ":" + command.help) + "\n";
    cases += "  " + command.name + ") _arguments -s" + zsh_arguments(command, keys_function) + " ;;\n";
  }
  return "#compdef " + program.name + "\n# Written by `" + program.name + " completion zsh`.\n" + keys_function +
         "() {\n  compadd -S = -- " + join(keys, " ") + "\n}\n" + name + "() {\n  local -a commands\n  commands=(\n" +
         commands + "  )\n  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n" +
         "    _describe command commands\n    _files\n    return\n  fi\n  local command=${words[2]}\n" +
         "  if (( ${commands[(I)$command:*]} )); then\n    shift words\n    (( CURRENT-- ))\n  fi\n  case $command "
         "in\n" +
         cases + "  *) _arguments -s" + zsh_arguments(program, keys_function) + " ;;\n  esac\n}\n" +
         "if [[ $funcstack[1] == " + name + " ]]; then\n  " + name + " \"$@\"\nelse\n  compdef " + name + " " +
         program.name + "\nfi\n";
}

// ---- fish ----

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_options(const CommandDescription& command, const std::string& prefix,
                         std::span<const std::string> keys) {
  std::string lines;
  for (const OptionDescription& option : command.options) {
    if (option.names.empty()) continue;
    lines += prefix;
    for (const std::string& name : option.names)
      lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.choices.empty()) {
      lines += " -x -a " + fish_quoted(join(option.choices, " "));
    } else if (option.names[0] == "--set") {
      lines += " -x -a " + fish_quoted(join(keys, "= ") + "=");
    } else if (!option.value.empty()) {
      lines += " -r";
    }
    lines += " -d " + fish_quoted(option.help) + "\n";
  }
  return lines;
}

std::string fish_script(const CommandDescription& program, std::span<const std::string> keys) {
  const std::string base = "complete -c " + program.name;
  std::string lines = "# fish completion for " + program.name + ", written by `" + program.name + " completion fish`\n";
  for (const CommandDescription& command : program.commands)
    lines += base + " -n __fish_use_subcommand -a " + command.name + " -d " + fish_quoted(command.help) + "\n";
  lines += fish_options(program, base + " -n __fish_use_subcommand", keys);
  for (const CommandDescription& command : program.commands)
    lines += fish_options(command, base + " -n '__fish_seen_subcommand_from " + command.name + "'", keys);
  return lines;
}

}  // namespace

std::string completion_script(Shell shell, const CommandDescription& program, std::span<const std::string> keys) {
  switch (shell) {
    case Shell::bash:
      return bash_script(program, keys);
    case Shell::zsh:
      return zsh_script(program, keys);
    case Shell::fish:
      return fish_script(program, keys);
  }
  return {};
}

}  // namespace mw::app
