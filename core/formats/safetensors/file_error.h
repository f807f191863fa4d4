// SPDX-License-Identifier: Apache-2.0
// Errors of the readers of core/formats. Text quoted from the file is converted to valid UTF-8.
#pragma once
#include <filesystem>
#include <string>

namespace mw::formats {

// Throws errors of one id: weights_fault(file, "tensor x", "wrong shape", "[2]", "[3]").
struct FileErrors {
  const char* id;
  [[noreturn]] void operator()(const std::filesystem::path& file, const std::string& place, const std::string& message,
                               const std::string& found = "", const std::string& expected = "",
                               const std::string& fix = "") const;
};

}  // namespace mw::formats
