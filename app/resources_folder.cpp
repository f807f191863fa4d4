// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/resources_folder.h"

#include "core/base/error.h"

namespace mw::app {
namespace fs = std::filesystem;

fs::path resources_folder() {
  std::error_code error;
  const fs::path program = fs::canonical("/proc/self/exe", error);
  const fs::path expected = program.parent_path().parent_path() / "share" / "meshwright";
  const fs::path folder = fs::canonical(expected, error);
  if (error || !fs::is_directory(folder / "hardware", error))
    throw Error({.id = "NO-RESOURCES",
                 .message = "the files that belong to this program are missing",
                 .file = expected.string(),
                 .expected = "the folder that is installed together with " + program.string(),
                 .fix = "install the package again, or build with CMake, which makes it"});
  return folder;
}

}  // namespace mw::app
