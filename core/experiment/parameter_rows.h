// SPDX-License-Identifier: Apache-2.0
// Helpers that build rows of the parameter table. Internal to the *_parameters.cpp files and validation.
#pragma once
#include <utility>

#include "core/experiment/parameters.h"

namespace mw::experiment::rows {

using Rows = std::vector<Parameter>;
using Texts = std::vector<std::string>;
inline constexpr auto kBasic = Level::basic, kAdvanced = Level::advanced;
inline constexpr double kMany = 1e8;
inline constexpr const char* kFolders =
    "folders";  // unit that marks a map of names to folders; other maps hold numbers

using enum ParamType;

struct Within {
  double min, max;
};

inline Parameter ranged(Parameter p, std::string unit, Within range) {
  p.unit = std::move(unit);
  p.min = range.min;
  p.max = range.max;
  return p;
}

// Each helper builds one row; build() fills in the group. The first of `choices` is the default.
inline Parameter row(ParamType type, std::string key, std::string label, Json fallback, std::string help, Level level) {
  return {.key = std::move(key),
          .group = {},
          .label = std::move(label),
          .type = type,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .level = level};
}
inline Parameter text_row(std::string key, std::string label, std::string fallback, std::string help,
                          Level level = kBasic) {
  return row(text, std::move(key), std::move(label), std::move(fallback), std::move(help), level);
}
inline Parameter path_row(std::string key, std::string label, std::string help, Level level = kBasic) {
  return row(path, std::move(key), std::move(label), "", std::move(help), level);
}
inline Parameter flag_row(std::string key, std::string label, std::string help, Level level = kBasic) {
  return row(flag, std::move(key), std::move(label), false, std::move(help), level);
}
inline Parameter map_row(std::string key, std::string label, std::string help, Level level = kBasic) {
  return row(map, std::move(key), std::move(label), Json::object(), std::move(help), level);
}
inline Parameter choice_row(std::string key, std::string label, Texts choices, std::string help, Level level = kBasic) {
  Parameter p = row(choice, std::move(key), std::move(label), choices.front(), std::move(help), level);
  p.choices = std::move(choices);
  return p;
}
inline Parameter list_row(std::string key, std::string label, Texts all, std::string help, Level level = kBasic) {
  Parameter p = row(list, std::move(key), std::move(label), all, std::move(help), level);
  p.choices = std::move(all);
  return p;
}
inline Parameter int_row(std::string key, std::string label, std::string unit, std::int64_t fallback, Within range,
                         std::string help, Level level = kBasic) {
  return ranged(row(integer, std::move(key), std::move(label), fallback, std::move(help), level), std::move(unit),
                range);
}
inline Parameter real_row(std::string key, std::string label, std::string unit, double fallback, Within range,
                          std::string help, Level level = kBasic) {
  return ranged(row(number, std::move(key), std::move(label), fallback, std::move(help), level), std::move(unit),
                range);
}

// planning_parameters.cpp
Rows price_rows();
Rows sharding_rows();
Rows length_rows();
Rows stack_rows();
Rows serve_rows();
Rows measured_rows();
// sweep_parameters.cpp
Rows server_rows();
Rows sweep_rows();
// recipe_parameters.cpp
Rows recipe_rows();
Rows export_rows();

}  // namespace mw::experiment::rows
