// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "app/command_description.h"

namespace mw::app {

enum class Shell { bash, zsh, fish };

// A script that completes commands, options, choices, files and the `keys` of --set ("train.steps").
std::string completion_script(Shell shell, const CommandDescription& program, std::span<const std::string> keys);

}  // namespace mw::app
