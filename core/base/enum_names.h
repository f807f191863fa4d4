// SPDX-License-Identifier: Apache-2.0
// The names of enum values in files, on the command line and in the window. Each enum that has them specialises
// kEnumNames beside its definition.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace mw {

template <std::size_t count>
using EnumNames = std::array<std::string_view, count>;

// The names of the enum's values, in the order of the enum.
template <class Enum>
inline constexpr EnumNames<0> kEnumNames{};

template <class Enum>
concept NamedEnum = !kEnumNames<Enum>.empty();

template <NamedEnum Enum>
constexpr std::string_view to_string(Enum value) {
  return kEnumNames<Enum>[static_cast<std::size_t>(value)];
}

template <NamedEnum Enum>
constexpr std::optional<Enum> parse(std::string_view name) {
  constexpr auto& names = kEnumNames<Enum>;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

// All values of the enum, in its order.
template <NamedEnum Enum>
constexpr auto all_values() {
  std::array<Enum, kEnumNames<Enum>.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

}  // namespace mw
