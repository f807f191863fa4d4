// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/readers/reader.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

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

fs::path corpus_file(const std::string& reader) {
  return fs::path(MW_FIXTURES).parent_path() / "readers/corpus" / reader;
}

std::vector<std::string> corpus(const std::string& reader) {
  const fs::path file = corpus_file(reader);
  const std::string all = fs::exists(file) ? read_file(file) : "";
  std::vector<std::string> inputs;
  for (size_t at = 0; at < all.size();) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(all.data() + at, all.data() + all.size(), length);
    at = static_cast<size_t>(end - all.data()) + 1;
    if (error != std::errc() || at > all.size() || all[at - 1] != '\n' || length > all.size() - at)
      throw std::runtime_error(file.string() + " is no corpus: byte " + std::to_string(at));
    inputs.push_back(all.substr(at, length));
    at += length;
  }
  return inputs;
}

std::string packed(const std::vector<std::string>& inputs) {
  std::string all;
  for (const std::string& input : inputs) all += std::to_string(input.size()) + "\n" + input;
  return all;
}

Choice choose(std::string_view bytes, size_t n) {
  if (bytes.empty()) return {0, bytes};
  return {static_cast<unsigned char>(bytes.front()) % n, bytes.substr(1)};
}

}  // namespace mw::readers
