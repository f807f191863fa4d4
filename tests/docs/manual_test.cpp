// SPDX-License-Identifier: GPL-3.0-or-later
// Holds the documentation to the code: keys, error ids, links, lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/files.h"
#include "core/experiment/parameters.h"
#include "tests/docs/pages.h"

namespace mw::docs {
namespace {
namespace fs = std::filesystem;

constexpr const char* kBegin = "<!-- generated: keys -->\n";
constexpr const char* kEnd = "<!-- end of generated part -->\n";

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string default_text(const runs::Parameter& p) {
  if (p.fallback == "" || p.fallback == Json::array() || p.fallback == Json::object()) return "";
  return "`" + (p.fallback.is_string() ? p.fallback.get<std::string>() : p.fallback.dump()) + "`";
}

std::string key_table() {
  std::string out, group;
  for (const runs::Parameter& p : runs::parameters()) {
    if (p.group != group) {
      group = p.group;
      out += "\n### " + group + "\n\n| Key | Label | Default | Accepts | Meaning |\n|---|---|---|---|---|\n";
    }
    out += "| `" + p.key + "` | " + cell(p.label) + " | " + cell(default_text(p)) + " | " + cell(range_text(p)) +
           " | " + cell(p.help) + " |\n";
  }
  return out + "\n";
}

// The first cells of the tables of troubleshooting: "| `PLAN`, `SEARCH` | ...".
std::multiset<std::string> explained_ids() {
  std::multiset<std::string> out;
  std::istringstream lines(read_file(manual_folder() / "10-troubleshooting.md"));
  static const std::regex kId("`([A-Z][A-Z0-9-]*)`");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string first = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator it(first.begin(), first.end(), kId), end; it != end; ++it) out.insert((*it)[1]);
  }
  return out;
}

// Error ids, rules of the checker and rules of the audit, with a file that has each.
std::map<std::string, std::string> ids_of_sources() {
  static const std::regex kNamed(R"-((?:\bid|\.rule) = "([A-Z][A-Z0-9-]*)")-"),
      kPassed(R"-(\b(?:problem|wrong|add|fail_file|Refused)\(\s*"([A-Z][A-Z0-9-]{2,})")-"),
      kPlace(R"-(, "([A-Z]{5,})"\})-"),  // RowPlace{..., "MEASUREMENT"}
      kHyphen(R"-("([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+)")-"), kPython(R"-(\bid="([A-Z][A-Z0-9-]*)")-");
  static const std::set<std::string> kOther{"UTF-8"};  // literals of the same form that are no ids
  std::map<std::string, std::string> out;
  for (const char* folder : {"core", "app", "ui", "resources/launch"})
    for (const fs::path& file : files_below(folder, {".h", ".cpp", ".py"})) {
      const std::string text = read_file(file);
      for (const std::regex* form : {&kNamed, &kPassed, &kPlace, &kHyphen, &kPython})
        for (std::sregex_iterator it(text.begin(), text.end(), *form), end; it != end; ++it)
          if (!kOther.contains((*it)[1])) out.emplace((*it)[1], fs::relative(file, repository()).string());
    }
  return out;
}

// The text without fenced blocks, blocks indented by four spaces and `code`.
std::string without_code(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  bool fenced = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || line.starts_with("```") || line.starts_with("    ")) continue;
    out += std::regex_replace(line, std::regex("`[^`]*`"), "") + "\n";
  }
  return out;
}

size_t lines_of(const fs::path& file) {
  const std::string text = read_file(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Manual, KeyTableIsCurrent) {
  const fs::path file = manual_folder() / "09-file-formats.md";
  const std::string text = read_file(file);
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const size_t from = begin + std::string(kBegin).size();
  const std::string current = key_table();
  if (std::getenv("MW_WRITE_MANUAL")) write_file_atomically(file, text.substr(0, from) + current + text.substr(end));
  EXPECT_EQ(read_file(file).substr(from, current.size()), current)
      << "write it anew: MW_WRITE_MANUAL=1 build/ci/tests/mw_docs_tests --gtest_filter=Manual.KeyTableIsCurrent";
}

TEST(Manual, ExplainsEveryErrorIdOnce) {
  const std::multiset<std::string> explained = explained_ids();
  const std::map<std::string, std::string> known = ids_of_sources();
  EXPECT_GT(known.size(), 150u);
  for (const auto& [id, file] : known)
    EXPECT_EQ(explained.count(id), 1u) << id << " of " << file << " in resources/manual/10-troubleshooting.md";
  for (const std::string& id : explained) EXPECT_TRUE(known.contains(id)) << id << " is explained, but nothing uses it";
}

TEST(Manual, LinksAndImagesExist) {
  static const std::regex kLink(R"(\[[^\]]*\]\(([^)\s]+)\))");
  for (const fs::path& page : pages()) {
    const std::string text = without_code(read_file(page));
    for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it) {
      const std::string link = (*it)[1];
      if (link.starts_with("https://") || link.starts_with("http://")) continue;
      const size_t hash = std::min(link.find('#'), link.size());
      const fs::path to = hash == 0 ? page : page.parent_path() / link.substr(0, hash);
      EXPECT_TRUE(fs::exists(to)) << link << " in " << page;
      if (hash == link.size() || !fs::exists(to)) continue;
      const std::vector<std::string> anchors = anchors_of(read_file(to));
      EXPECT_NE(std::find(anchors.begin(), anchors.end(), link.substr(hash + 1)), anchors.end())
          << link << " in " << page << ": no such heading";
    }
  }
}

TEST(Manual, IndexListsEveryChapter) {
  const std::string index = read_file(manual_folder() / "README.md");
  for (const fs::path& page : files_below("resources/manual", {".md"}))
    if (page.filename() != "README.md") {
      EXPECT_NE(index.find("](" + page.filename().string() + ")"), std::string::npos) << page;
    }
}

TEST(Manual, ImagesAreSmall) {
  for (const fs::path& image : files_below("resources/manual/images", {".png"}))
    EXPECT_LE(fs::file_size(image), 150u * 1024) << image;
}

TEST(Readme, IsShort) {
  EXPECT_LE(lines_of(repository() / "README.md"), 120u);
  for (const char* folder : {"core", "ui"})
    for (const fs::path& page : files_below(folder, {".md"}))
      if (page.filename() == "README.md" && page.parent_path() != repository() / "core") {
        EXPECT_LE(lines_of(page), 40u) << page;
      }
}

}  // namespace
}  // namespace mw::docs
