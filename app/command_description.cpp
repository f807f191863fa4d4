// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command_description.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/text.h"

namespace mw::app {
namespace {

// CLI11 keeps the values of a check only in the text of the type: "TEXT:{on,off}", "ENUM:value in {a->0,b->1} OR
// {0,1}".
std::vector<std::string> choices_of(const std::string& type) {
  const size_t begin = type.find('{'), end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::vector<std::string> choices;
  std::istringstream words(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word.substr(0, word.find("->")));
  return choices;
}

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription description{.help = option.get_description(), .required = option.get_required()};
  for (const std::string& name : option.get_snames()) description.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) description.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  description.choices = choices_of(type);
  if (option.get_positional()) {
    description.value = option.get_single_name();
    std::transform(description.value.begin(), description.value.end(), description.value.begin(), ::toupper);
  } else if (option.get_items_expected_max() > 0) {
    description.value = type.substr(0, type.find(':'));
  }
  return description;
}

}  // namespace

CommandDescription describe_command(const CLI::App& command) {
  CommandDescription description{.name = command.get_name(), .help = command.get_description()};
  for (const CLI::Option* option : command.get_options()) description.options.push_back(describe_option(*option));
  std::stable_partition(description.options.begin(), description.options.end(),
                        [](const OptionDescription& option) { return option.names.empty(); });
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    description.commands.push_back(describe_command(*sub));
  return description;
}

namespace {

// A line of text: no character of it is taken for a request or an escape, and hyphens can be copied to a shell.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string value_text(const OptionDescription& option) {
  if (option.choices.empty()) return "\\fI" + roff(option.value) + "\\fR";
  return joined(option.choices, "|", roff);
}

std::string option_entry(const OptionDescription& option) {
  const std::string names = joined(option.names, ", ", [](const auto& name) { return "\\fB" + roff(name) + "\\fR"; });
  const std::string value = option.value.empty() ? "" : value_text(option);
  return ".TP\n" + names + (names.empty() || value.empty() ? "" : " ") + value + "\n" + roff(option.help) + "\n";
}

std::string synopsis(const std::string& program, const CommandDescription& command) {
  std::string line = ".B " + roff(program + " " + command.name) + "\n";
  for (const OptionDescription& option : command.options) {
    if (option.names.empty())
      line += ".RI " + std::string(option.required ? "" : "[ ") + option.value + (option.required ? "" : " ]") + "\n";
    if (!option.names.empty() && option.required)
      line += ".BI " + roff(option.names.back()) + " \"\\ " + roff(option.value) + "\"\n";
  }
  return line + ".RI [ options ]\n";
}

bool is_common(const OptionDescription& option) {  // described once, under OPTIONS
  for (const std::string& name : option.names)
    if (name == "--help" || name == "--json" || name == "--runs-dir" || name == "--set") return true;
  return false;
}

std::string command_section(const std::string& program, const CommandDescription& command) {
  std::string text = ".SS " + roff(command.name) + "\n" + roff(command.help) + ".\n.PP\n" + synopsis(program, command);
  for (const OptionDescription& option : command.options)
    if (!is_common(option)) text += option_entry(option);
  return text;
}

constexpr const char* kCommonOptions = R"(.TP
.B \-\-json
Of every command: print JSON on standard output, and nothing else.
.TP
.BR \-\-set " \fIKEY\fR=\fIVALUE\fR"
Of every command that reads an experiment: override a key of it. May be repeated.
)";

constexpr const char* kRest = R"(.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Failed while running.
.TP
.B 2
Bad usage or bad input.
.TP
.B 130
Cancelled.
.SH ENVIRONMENT
.TP
.B MESHWRIGHT_RUNS
Folder of the run store.
.TP
.B MESHWRIGHT_API_KEY
Key that clients of
.B serve
must send.
.TP
.B MESHWRIGHT_CPU
Limits the kernels to an instruction set: base, avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16 or amx;
on ARM64 base, neon, neon_dotprod or neon_bf16.
.SH FILES
.TP
.I ~/.cache/meshwright/kernels.json
The fastest kernels of this processor; timed again if it is deleted.
.TP
.I ~/.local/share/meshwright
The run store, unless
.B \-\-runs\-dir
or
.B MESHWRIGHT_RUNS
names another.
.TP
.I ~/.config/meshwright/hardware
The user's own chips, prices and calibration.
.TP
.I PREFIX/share/meshwright/manual
The manual, which the window shows with F1.
)";

}  // namespace

std::string man_page(const CommandDescription& program, const std::string& version) {
  std::string title = program.name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string page =
      ".\\\" Written by `" + program.name + " man-page`\n.TH " + title + " 1 \"\" \"Meshwright " + version +
      "\" \"User commands\"\n.SH NAME\n" + program.name +
      " \\- design, run and compare fine\\-tuning and serving experiments with Gemma\n.SH SYNOPSIS\n.B " +
      program.name + "\n.RI [ options ]\n.RI [ FILE ]\n.br\n.B " + program.name +
      "\n.I COMMAND\n.RI [ arguments ]\n.SH DESCRIPTION\nWithout a command the window opens, with the experiment\n"
      ".I FILE\nif one is given. Every command works without a display.\n.SH OPTIONS\n";
  for (const OptionDescription& option : program.options)
    if (!option.names.empty()) page += option_entry(option);
  page += std::string(kCommonOptions) + ".SH COMMANDS\n";
  for (const CommandDescription& command : program.commands) page += command_section(program.name, command);
  return page + kRest;
}

namespace {

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
      cases += "    " + place + ":" + joined(option.names, "|" + place + ":") + ") words='" +
               joined(option.choices, " ") + "' ;;\n";
  return cases;
}

std::string bash_script(const CommandDescription& program, std::span<const std::string> keys) {
  std::string options = "    *) options='" + joined(option_names(program), " ") + "' ;;\n", choices;
  std::string by_command;
  for (const CommandDescription& command : program.commands) {
    by_command += "    " + command.name + ") options='" + joined(option_names(command), " ") + "' ;;\n";
    choices += bash_choices(command, command.name);
  }
  return "# bash completion for " + program.name + ", written by `" + program.name + R"( completion bash`
_)" + program.name +
         R"(() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " )" +
         joined(command_names(program), " ") + R"( " in
      *" ${COMP_WORDS[i]} "*) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  if [[ $before == --set ]]; then
    compopt -o nospace
    COMPREPLY=($(compgen -S = -W ')" +
         joined(keys, " ") + R"(' -- "$current"))
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
         joined(command_names(program), " ") + R"(' -- "$current"))
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
  if (!option.choices.empty()) return "(" + joined(option.choices, " ") + ")";
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
         "() {\n  compadd -S = -- " + joined(keys, " ") + "\n}\n" + name + "() {\n  local -a commands\n  commands=(\n" +
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
      lines += " -x -a " + fish_quoted(joined(option.choices, " "));
    } else if (option.names[0] == "--set") {
      lines += " -x -a " + fish_quoted(joined(keys, "= ") + "=");
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
