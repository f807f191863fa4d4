// SPDX-License-Identifier: GPL-3.0-or-later
// Holds the documentation to the code: keys, error ids, links, lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/experiment/parameters.h"
#include "core/hardware/catalogue.h"
#include "tests/base/scratch.h"
#include "tests/docs/pages.h"

namespace mw::docs {
namespace {
namespace fs = std::filesystem;

constexpr const char* kBegin = "<!-- generated: keys -->\n";
constexpr const char* kEnd = "<!-- end of generated part -->\n";

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) text.replace(at, 1, "&lt;");
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string default_text(const experiment::Parameter& p) {
  if (p.fallback == "" || p.fallback == Json::array() || p.fallback == Json::object()) return "";
  return "`" + (p.fallback.is_string() ? p.fallback.get<std::string>() : p.fallback.dump()) + "`";
}

std::string search_text(const experiment::SearchColumn& search) {
  if (!search.rule.empty()) return std::string(search.rule);
  std::vector<std::string_view> all = search.values;
  all.insert(all.end(), search.settings.begin(), search.settings.end());
  return joined(all);
}

std::string key_table() {
  std::string out, group;
  for (const experiment::Parameter& p : experiment::parameters()) {
    if (p.group != group) {
      group = p.group;
      out += "\n### " + group +
             "\n\n| Key | Label | Default | Accepts | Meaning | Search tries |\n|---|---|---|---|---|---|\n";
    }
    out += "| `" + p.key + "` | " + cell(p.label) + " | " + cell(default_text(p)) + " | " + cell(range_text(p)) +
           " | " + cell(p.help) + " | " + cell(search_text(p.columns.search)) + " |\n";
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

// Whether the literal text[from, to) in quotes stands where an id is given: named, as the first argument of a function
// that makes an error or of a background task, last in a RowLocation{..., "MEASUREMENT"}, or in the form of ids, which
// nothing else has.
bool is_id(const std::string& text, size_t from, size_t to) {
  const std::string_view literal(text.data() + from, to - from), before(text.data(), from - 1);
  const auto follows = [&](std::string_view word) {
    const size_t end = before.find_last_not_of(" \n");
    return end != std::string_view::npos && before.substr(0, end + 1).ends_with(word);
  };
  for (const char* word :
       {"id =", ".rule =", "id=", " Error(", "problem(", "wrong(", " add(", "fail_file(", "Refused(", "task_{"})
    if (follows(word)) return true;
  const bool last = text.compare(to, 2, "\"}") == 0 && follows(",") && literal.size() >= 5;
  return last || (literal.find('-') != std::string_view::npos && literal.back() != '-' && literal != "UTF-8");
}

// Error ids, rules of the checker and rules of the audit, with a file that has each.
std::map<std::string, std::string> ids_of_sources() {
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  std::map<std::string, std::string> out;
  for (const char* folder : {"core", "app", "ui", "resources/launch"})
    for (const fs::path& file : files_below(folder, {".h", ".cpp", ".py"})) {
      const std::string text = read_file(file);
      for (size_t quote = text.find('"'); quote != std::string::npos; quote = text.find('"', quote + 1)) {
        const size_t from = quote + 1, to = std::min(text.find_first_not_of(kLetters, from), text.size());
        if (to - from < 2 || !std::isupper(static_cast<unsigned char>(text[from])) || text.compare(to, 1, "\"") != 0)
          continue;
        if (is_id(text, from, to)) out.emplace(text.substr(from, to - from), fs::relative(file, repository()).string());
      }
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
      << "write it anew: MW_WRITE_MANUAL=1 build/release/tests/mw_docs_tests --gtest_filter=Manual.KeyTableIsCurrent";
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

// Files and folders of the repository that a page names in `code`, also as patterns: `core/lint/check_*.cpp`.
TEST(Manual, NamedFilesExist) {
  static const std::regex kPath("`((?:core|ui|app|tests|scripts|resources|benchmarks)/[A-Za-z0-9_./*-]+)`");
  for (const fs::path& page : pages()) {
    const std::string text = read_file(page);
    for (std::sregex_iterator it(text.begin(), text.end(), kPath), end; it != end; ++it) {
      const std::string path = (*it)[1];
      const fs::path folder = (repository() / path).parent_path();
      const size_t star = path.find('*');
      if (star == std::string::npos) {
        EXPECT_TRUE(fs::exists(repository() / path)) << path << " in " << page;
        continue;
      }
      const std::string start = (repository() / path.substr(0, star)).string();
      const bool any = fs::is_directory(folder) &&
                       std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                                   [&](const auto& entry) { return entry.path().string().starts_with(start); });
      EXPECT_TRUE(any) << path << " in " << page;
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

TEST(Manual, CommandLineChapterNamesEverySubcommandAndOption) {
  const std::string chapter = read_file(manual_folder() / "08-command-line.md");
  static const std::regex kOption(R"-("(--[a-z][a-z-]+)(?:,(--[a-z-]+))?")-");
  for (const fs::path& file : files_below("app", {".cpp"})) {
    const std::string text = read_file(file), name = file.stem().string();
    if (name.ends_with("_command")) {
      EXPECT_NE(chapter.find("| `" + name.substr(0, name.find('_'))), std::string::npos) << name;
    }
    for (std::sregex_iterator it(text.begin(), text.end(), kOption), end; it != end; ++it)
      for (const std::string& option : {(*it)[1].str(), (*it)[2].str()})
        EXPECT_NE(chapter.find(option), std::string::npos) << option << " of " << file;
  }
}

// Blocks that are indented by four spaces and begin with a brace.
std::vector<std::string> json_blocks(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "    {") out.emplace_back(), inside = true;
    if (inside) out.back() += line + "\n";
    if (line == "    }") inside = false;
  }
  return out;
}

TEST(Manual, ExampleOfOwnHardwareIsAccepted) {
  const std::vector<std::string> blocks = json_blocks(read_file(manual_folder() / "06-your-own-hardware.md"));
  ASSERT_EQ(blocks.size(), 2u);
  const test::Scratch scratch;
  write_file_atomically(scratch.path() / "chips.json", blocks[0]);
  write_file_atomically(scratch.path() / "prices.json", blocks[1]);
  const auto catalogue = hardware::Catalogue::load(fs::path(MW_RESOURCES) / "hardware", scratch.path());
  for (const Problem& problem : catalogue.problems()) ADD_FAILURE() << to_text(problem);
  EXPECT_EQ(catalogue.target("1xmygpu").chip.name, "My GPU");
  EXPECT_NE(catalogue.price("mygpu"), nullptr);
}

TEST(Manual, ImagesAreSmall) {
  for (const fs::path& image : files_below("resources/manual/images", {".png"}))
    EXPECT_LE(fs::file_size(image), 150u * 1024) << image;
}

TEST(Readme, IsShort) {
  EXPECT_LE(lines_of(repository() / "README.md"), 120u);
}

}  // namespace
}  // namespace mw::docs
