// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "app/command_description.h"
#include "core/base/enum_names.h"

namespace mw::app {

enum class Shell { bash, zsh, fish };

// A script that completes commands, options, choices, files and the `keys` of --set ("train.steps").
std::string completion_script(Shell shell, const CommandDescription& program, std::span<const std::string> keys);

}  // namespace mw::app

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::app::Shell>{"bash", "zsh", "fish"};
