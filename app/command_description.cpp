// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command_description.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

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

}  // namespace mw::app
