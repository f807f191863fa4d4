// SPDX-License-Identifier: GPL-3.0-or-later
// What `inspect` says of what other programs leave while they train: {kind, ...}. Throw mw::Error.
#pragma once
#include <filesystem>

#include "core/base/json.h"

namespace mw::app {

// Its steps, and of the last one every item's arrays.
Json inspect_orbax(const std::filesystem::path& folder);
// A file or folder that formats::log_kind knows.
Json inspect_log(const std::filesystem::path& path);

}  // namespace mw::app
