// SPDX-License-Identifier: Apache-2.0
// The names of enum values in files, on the command line and in the window. Each enum that has them specialises
// EnumNames beside its definition.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace mw {

// `values`: the names of the enum's values, in the order of the enum.
template <class Enum>
struct EnumNames;

template <class Enum>
concept NamedEnum = requires {
  EnumNames<Enum>::values;
};

template <NamedEnum Enum>
constexpr std::string_view to_string(Enum value) {
  return EnumNames<Enum>::values[static_cast<std::size_t>(value)];
}

template <NamedEnum Enum>
constexpr std::optional<Enum> parse(std::string_view name) {
  constexpr auto& names = EnumNames<Enum>::values;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

// All values of the enum, in its order.
template <NamedEnum Enum>
constexpr auto all_values() {
  std::array<Enum, EnumNames<Enum>::values.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

}  // namespace mw
