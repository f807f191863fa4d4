// SPDX-License-Identifier: Apache-2.0
// Helpers that build rows of the parameter table. Internal to parameter_table.cpp.
#pragma once
#include <cstdlib>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"

namespace mw::experiment::rows {

using Rows = std::vector<Parameter>;
using Texts = std::vector<std::string>;
inline constexpr auto kBasic = Level::basic, kAdvanced = Level::advanced;
inline constexpr double kMany = 1e8;

using enum ParamType;

using Offers = options::StackOptions;
constexpr RecipeColumn not_supported(std::string_view reason) {
  return {RecipeEffect::not_supported, RecipeEffect::not_supported, RecipeEffect::not_supported, reason};
}
constexpr RecipeColumn only_planned(std::string_view reason) {
  return {RecipeEffect::only_planned, RecipeEffect::only_planned, RecipeEffect::only_planned, reason};
}
inline constexpr RecipeColumn kOnlyPlanned = only_planned("used for planning only; this software has its own setting");

template <class T>
struct Number {
  std::string unit;
  T fallback;
  double min, max;  // range
};
struct Words {
  std::string label, help;
  Level level;
};

// The part of the configuration that has the members of Class.
template <class Class>
Class& part(BoundExperiment& config) {
  constexpr std::tuple kSections(
      &BoundExperiment::model, &BoundExperiment::target, &BoundExperiment::price, &BoundExperiment::budget,
      &BoundExperiment::sharding, &BoundExperiment::lora, &BoundExperiment::data, &BoundExperiment::train,
      &BoundExperiment::stack, &BoundExperiment::sample, &BoundExperiment::size, &BoundExperiment::serve,
      &BoundExperiment::sweep, &BoundExperiment::measured, &BoundExperiment::cost, &BoundExperiment::exported);
  return config.*std::get<Class BoundExperiment::*>(kSections);
}
template <>
inline BoundExperiment& part(BoundExperiment& config) {
  return config;
}
template <>
inline options::DataRows& part(BoundExperiment& config) {
  return config.data;
}
template <>
inline options::KeptActivations& part(BoundExperiment& config) {
  return config.train;
}
template <>
inline options::ServerLimits& part(BoundExperiment& config) {
  return config.serve;
}
template <>
inline options::LoadSettings& part(BoundExperiment& config) {
  return config.sweep;
}

// A row names the member that holds its value as &options::Lora::rank, as member(&options::Sweep::slo, &Slo::ttft_ms),
// or as a function of the configuration.
template <class Class, class T>
constexpr auto member(T Class::*first, auto... rest) {
  return [=](BoundExperiment & config) -> auto& {
    return ((part<Class>(config).*first).*....*rest);
  };
}
constexpr auto member(auto function) {
  return function;
}

// Converts a number that fits T, else returns 0.
template <class T>
T number_as(double value) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::lowest()),
                   kHigh = static_cast<double>(std::numeric_limits<T>::max());
  return value >= kLow && value <= kHigh ? static_cast<T>(value) : T{};
}

// Convert a value that check_value() accepts. Lists may hold numbers as texts.
template <class T>
requires std::is_arithmetic_v<T>
void read(const Json& value, const std::filesystem::path&, T& out) {
  if (value.is_boolean())
    out = static_cast<T>(value.get<bool>());
  else if (value.is_string())
    out = number_as<T>(std::atof(value.get_ref<const std::string&>().c_str()));
  else
    out = value.is_number_integer() ? static_cast<T>(value.get<std::int64_t>()) : number_as<T>(value.get<double>());
}
inline void read(const Json& value, const std::filesystem::path&, std::string& out) {
  out = value.is_string() ? value.get<std::string>() : value.dump();
}
inline void read(const Json& value, const std::filesystem::path& folder, std::filesystem::path& out) {
  out = value.get<std::string>();
  if (!out.empty() && out.is_relative()) out = (folder / out).lexically_normal();
}
template <NamedEnum T>
void read(const Json& value, const std::filesystem::path&, T& out) {
  out = parse<T>(value.get_ref<const std::string&>()).value_or(T{});
}
template <NamedEnum T>
void read(const Json& value, const std::filesystem::path&, std::optional<T>& out) {
  out = parse<T>(value.get_ref<const std::string&>());  // "auto" gives an empty optional
}
inline void read(const Json& axes, const std::filesystem::path&, mesh::Mesh& out) {
  out.axes.clear();
  for (const auto& [name, size] : axes.items()) out.axes.push_back({name, size.get<int>()});
}
template <class T>
void read(const Json& values, const std::filesystem::path& folder, std::vector<T>& out) {
  out.clear();
  for (const Json& value : values) read(value, folder, out.emplace_back());
}
template <class T>
void read(const Json& values, const std::filesystem::path& folder, std::vector<std::pair<std::string, T>>& out) {
  out.clear();
  for (const auto& [name, value] : values.items()) read(value, folder, out.emplace_back(name, T{}).second);
}

template <class Enum>
Texts names_of() {
  return {kEnumNames<Enum>.begin(), kEnumNames<Enum>.end()};
}

// Each helper builds one row; build() fills in the group. `member` is where bind() (bound_experiment.h) stores the
// value.
template <class Member>
Parameter row(ParamType type, std::string key, Member member, Words words, Json fallback) {
  return {.key = std::move(key),
          .group = {},
          .label = std::move(words.label),
          .type = type,
          .fallback = std::move(fallback),
          .help = std::move(words.help),
          .level = words.level,
          .store = [place = rows::member(member)](BoundExperiment& config, const Json& value,
                                                  const std::filesystem::path& folder) {
            read(value, folder, place(config));
          }};
}
Parameter text_row(std::string key, auto member, std::string label, std::string fallback, std::string help,
                   Level level = kBasic) {
  return row(text, std::move(key), member, {std::move(label), std::move(help), level}, std::move(fallback));
}
Parameter path_row(std::string key, auto member, std::string label, std::string help, Level level = kBasic) {
  return row(path, std::move(key), member, {std::move(label), std::move(help), level}, "");
}
// A flag that is off by default; on_row() is on by default.
Parameter flag_row(std::string key, auto member, std::string label, std::string help, Level level = kBasic) {
  return row(flag, std::move(key), member, {std::move(label), std::move(help), level}, false);
}
Parameter on_row(std::string key, auto member, std::string label, std::string help, Level level = kBasic) {
  return row(flag, std::move(key), member, {std::move(label), std::move(help), level}, true);
}
Parameter map_row(std::string key, auto member, std::string label, std::string help, Level level = kBasic) {
  return row(map, std::move(key), member, {std::move(label), std::move(help), level}, Json::object());
}
Parameter folders_row(std::string key, auto member, std::string label, std::string help, Level level = kBasic) {
  Parameter p = map_row(std::move(key), member, std::move(label), std::move(help), level);
  p.unit = kFolders;
  return p;
}

Parameter with(Parameter row, Columns columns) {
  row.columns = std::move(columns);
  return row;
}
// A setting of training, which has to say what recipes do with it.
struct TrainingRow {
  TrainingRow(Parameter row, RecipeColumn recipes, Columns columns = {}) : parameter(std::move(row)) {
    parameter.columns = std::move(columns);
    parameter.columns.recipes = recipes;
  }
  Parameter parameter;
};
// A row that every recipe applies.
TrainingRow applied(Parameter row, Columns columns = {}) {
  constexpr RecipeColumn kApplied{RecipeEffect::applied, RecipeEffect::applied, RecipeEffect::applied, {}};
  return {std::move(row), kApplied, std::move(columns)};
}
// A setting that TRL, axolotl and LLaMA-Factory call the same.
constexpr PeerNames in_trainers(std::string_view name, std::string_view torchtune = {}) {
  return {.trl = name, .axolotl = name, .llama_factory = name, .torchtune = torchtune};
}
Rows held_by_recipes(std::vector<TrainingRow> rows) {
  Rows out;
  for (TrainingRow& row : rows) out.push_back(std::move(row.parameter));
  return out;
}

// The enum of a choice's member; an empty optional is the choice "auto".
template <class T>
struct Choice {
  using Enum = T;
  static constexpr bool has_auto = false;
};
template <class T>
struct Choice<std::optional<T>> {
  using Enum = T;
  static constexpr bool has_auto = true;
};
template <class Member>
using ChoiceOf =
    Choice<std::remove_reference_t<decltype(member(std::declval<Member>())(std::declval<BoundExperiment&>()))>>;

// The choices are "auto" if the member is an optional, then `values`, or all values of the enum if `values` is empty.
// The first is the default.
template <class Member, class Enum = typename ChoiceOf<Member>::Enum>
Parameter choice_row(std::string key, Member member, std::string label, std::string help, Level level = kBasic,
                     const std::vector<Enum>& values = {}) {
  Texts choices = values.empty() ? names_of<Enum>() : Texts();
  for (const Enum value : values) choices.emplace_back(to_string(value));
  if (ChoiceOf<Member>::has_auto) choices.insert(choices.begin(), "auto");
  Parameter p = row(choice, std::move(key), member, {std::move(label), std::move(help), level}, choices.front());
  p.choices = std::move(choices);
  return p;
}
// Some of `all`; all by default.
Parameter list_row(std::string key, auto member, std::string label, Texts all, std::string help, Level level = kBasic) {
  Parameter p = row(list, std::move(key), member, {std::move(label), std::move(help), level}, all);
  p.choices = std::move(all);
  return p;
}
// Any texts or numbers.
Parameter free_list(std::string key, auto member, std::string label, std::string unit, Json fallback,
                    std::string help) {
  Parameter p = row(list, std::move(key), member, {std::move(label), std::move(help), kAdvanced}, std::move(fallback));
  p.unit = std::move(unit);
  return p;
}
template <class T>
Parameter number_row(ParamType type, std::string key, auto member, Words words, Number<T> value) {
  Parameter p = row(type, std::move(key), member, std::move(words), value.fallback);
  p.unit = std::move(value.unit);
  p.min = value.min;
  p.max = value.max;
  return p;
}
Parameter int_row(std::string key, auto member, std::string label, Number<std::int64_t> value, std::string help,
                  Level level = kBasic) {
  return number_row(integer, std::move(key), member, {std::move(label), std::move(help), level}, std::move(value));
}
Parameter real_row(std::string key, auto member, std::string label, Number<double> value, std::string help,
                   Level level = kBasic) {
  return number_row(ParamType::number, std::move(key), member, {std::move(label), std::move(help), level},
                    std::move(value));
}

}  // namespace mw::experiment::rows
