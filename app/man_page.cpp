// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/man_page.h"

#include <cctype>

namespace mw::app {
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
  std::string text;
  for (const std::string& choice : option.choices) text += (text.empty() ? "" : "|") + roff(choice);
  return text;
}

std::string option_entry(const OptionDescription& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
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

}  // namespace mw::app
