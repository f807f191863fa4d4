// SPDX-License-Identifier: GPL-3.0-or-later
// The Markdown files of the repository, for tests that hold them to the code.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace mw::docs {

std::filesystem::path repository();
std::filesystem::path manual_folder();
// Files below `folder` of the repository with one of the endings, sorted.
std::vector<std::filesystem::path> files_below(const std::string& folder, const std::vector<std::string>& endings);
// README.md, CHANGELOG.md and CONTRIBUTING.md, the manual, and the READMEs and decision records of core and ui.
std::vector<std::filesystem::path> pages();
// The anchor that GitHub and the manual window give a heading: "Your own hardware" becomes "your-own-hardware".
std::string anchor_of(const std::string& heading);
// The anchors of all headings of a page; fenced blocks are skipped.
std::vector<std::string> anchors_of(const std::string& text);

}  // namespace mw::docs
