// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once
#include <filesystem>

namespace mw::app {

// The shipped files: share/meshwright beside the folder of the program, wherever both are installed; in a build folder
// it is a link to resources/. Throws Error NO-RESOURCES if it is missing.
std::filesystem::path resources_folder();

}  // namespace mw::app
