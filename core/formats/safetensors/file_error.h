// SPDX-License-Identifier: Apache-2.0
// Errors of the readers of core/formats. Text quoted from the file is converted to valid UTF-8.
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
