// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/readers/reader.h"

#include <algorithm>

#include "core/base/files.h"

namespace mw::readers {
namespace fs = std::filesystem;

std::string fixture(const std::string& path) {
  return read_file(fs::path(MW_FIXTURES) / path);
}

std::string resource(const std::string& path) {
  return read_file(fs::path(MW_RESOURCES) / path);
}

std::vector<std::string> fixtures_called(const std::string& folder, const std::string& file) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(MW_FIXTURES) / folder))
    if (entry.is_regular_file() && entry.path().filename() == file) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  std::vector<std::string> all;
  for (const fs::path& path : found) all.push_back(read_file(path));
  return all;
}

Choice choose(std::string_view bytes, size_t n) {
  if (bytes.empty()) return {0, bytes};
  return {static_cast<unsigned char>(bytes.front()) % n, bytes.substr(1)};
}

}  // namespace mw::readers
