// SPDX-License-Identifier: Apache-2.0
// The one error of a reader: which file, where in it, found and expected. Words of the file are made valid UTF-8.
#pragma once
#include <filesystem>
#include <string>

namespace mw::formats {

struct FileFault {
  std::string message, found = {}, expected = {}, fix = {};
};
[[noreturn]] void fail_file(const char* id, const std::filesystem::path& file, const std::string& place,
                            const FileFault& fault);

}  // namespace mw::formats
