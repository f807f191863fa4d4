// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/docs/pages.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/files.h"

namespace mw::docs {
namespace fs = std::filesystem;

fs::path repository() {
  return MW_SOURCE_DIR;
}

fs::path manual_folder() {
  return fs::path(MW_RESOURCES) / "manual";
}

std::vector<fs::path> files_below(const std::string& folder, const std::vector<std::string>& endings) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(repository() / folder))
    if (entry.is_regular_file() &&
        std::find(endings.begin(), endings.end(), entry.path().extension().string()) != endings.end())
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> out;
  for (const char* name : {"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}) out.push_back(repository() / name);
  for (const char* folder : {"core", "ui", "resources/manual"})
    for (fs::path& page : files_below(folder, {".md"})) out.push_back(std::move(page));
  return out;
}

std::string anchor_of(const std::string& heading) {
  std::string out;
  for (const char c : heading) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) || c == '_' || c == '-')
      out += static_cast<char>(std::tolower(u));
    else if (c == ' ')
      out += '-';
  }
  return out;
}

std::vector<std::string> anchors_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  bool fenced = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || !line.starts_with("#")) continue;
    out.push_back(anchor_of(line.substr(std::min(line.size(), line.find_first_not_of("# ")))));
  }
  return out;
}

}  // namespace mw::docs
