// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once
#include <string>

#include "app/command_description.h"

namespace mw::app {

// The manual page in section 1, in the man macros of groff. `version` is shown in its footer.
std::string man_page(const CommandDescription& program, const std::string& version);

}  // namespace mw::app
