// SPDX-License-Identifier: GPL-3.0-or-later
// Every key of settings.json is read by a script of its recipe, or listed as one that is not, with the reason.
#include "core/recipes/settings.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/files.h"
#include "core/jobs/recipe_export.h"
#include "tests/shipped.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::IsEmpty;
using Keys = std::set<std::string>;

// ["a"]["b"] or ['a']['b'] as a.b
const std::string kSubscripts = R"(((?:\[["']\w+["']\])+))";
std::string dotted(const std::string& subscripts) {
  static const std::regex name(R"(\w+)");
  std::string out;
  for (std::sregex_iterator at(subscripts.begin(), subscripts.end(), name), end; at != end; ++at)
    out += (out.empty() ? "" : ".") + at->str();
  return out;
}

std::string without_comments(const std::string& text) {
  static const std::regex comment(R"((^|\s)#.*)");
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += std::regex_replace(line, comment, "") + "\n";
  return out;
}

// "a, b[c, d]" at the commas outside brackets
std::vector<std::string> at_commas(const std::string& text) {
  std::vector<std::string> out{""};
  int depth = 0;
  for (const char c : text) {
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (c == ',' && depth == 0)
      out.emplace_back();
    else if (c != ' ' || !out.back().empty())
      out.back() += c;
  }
  for (std::string& part : out) part.erase(part.find_last_not_of(' ') + 1);
  return out;
}

// Names that stand for a part of the settings: TRAIN, t, self.lora ...; by name, and parameters called as a section.
std::map<std::string, std::string> aliases(const std::string& script) {
  static const std::regex assignment(R"(^\s*([\w., ]+?)\s*=\s*([^=].*)$)");
  static const std::regex section(R"((?:self\.)?(?:SETTINGS|settings))" + kSubscripts);
  std::map<std::string, std::string> out{{"train", "train"}, {"lora", "lora"}};
  std::istringstream in(script);
  for (std::string line; std::getline(in, line);) {
    std::smatch parts, found;
    if (!std::regex_match(line, parts, assignment)) continue;
    const auto names = at_commas(parts[1]), values = at_commas(parts[2]);
    for (size_t i = 0; i < names.size() && names.size() == values.size(); ++i)
      if (std::regex_match(values[i], found, section)) out[names[i]] = dotted(found[1]);
  }
  return out;
}

void add_reads(const std::string& script, const std::string& expression, const std::string& prefix, Keys& out) {
  const std::regex read(expression);
  for (std::sregex_iterator at(script.begin(), script.end(), read), end; at != end; ++at)
    out.insert((prefix.empty() ? "" : prefix + ".") + dotted((*at)[1]));
}

Keys reads(const std::string& text) {
  Keys out;
  const std::string script = without_comments(text);
  add_reads(script, R"((?:SETTINGS|settings|json\.load\(open\(sys\.argv\[1\]\)\)))" + kSubscripts, "", out);
  for (const auto& [name, path] : aliases(script)) {
    const std::string escaped = R"((?:^|[^\w."']))" + std::regex_replace(name, std::regex(R"(\.)"), R"(\.)");
    add_reads(script, escaped + kSubscripts, path, out);
    add_reads(script, escaped + R"(\.get\(["'](\w+)["'])", path, out);
  }
  return out;
}

// Objects that the scripts take whole.
const Keys kWhole{"model.tunix.config", "data.chat_template", "lora.rank_pattern",
                  "lora.alpha_pattern", "not_read",           "slices"};
void leaves_of(const Json& node, const std::string& prefix, Keys& out) {
  for (const auto& [name, value] : node.items()) {
    const std::string key = prefix.empty() ? name : prefix + "." + name;
    if (value.is_object() && !value.empty() && !kWhole.contains(key))
      leaves_of(value, key, out);
    else
      out.insert(key);
  }
}

struct Exported {
  Keys keys, read;
  std::map<std::string, std::string> unread;
};
Exported exported(model::Stack kind) {
  const experiment::Experiment e = experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples" / "tiny-lora.json");
  const fs::path templates = fs::path(MW_RESOURCES) / "recipes";
  Exported out;
  for (const recipes::File& file :
       recipes::recipe_files(recipe_input(kind, e, test::context(), templates), templates)) {
    if (file.path == "settings.json") {
      const Json settings = parse_json(file.content, file.path);
      leaves_of(settings, "", out.keys);
      out.unread = settings.at("not_read").get<std::map<std::string, std::string>>();
    }
    if (file.path.ends_with(".py") || file.path.ends_with(".sh")) out.read.merge(reads(file.content));
  }
  return out;
}

class RecipeSettings : public testing::TestWithParam<model::Stack> {};

TEST_P(RecipeSettings, EveryKeyIsReadByAScriptOrListedAsNotRead) {
  const Exported e = exported(GetParam());
  ASSERT_GT(e.keys.size(), 30u);
  Keys silent, stale, gone;
  for (const std::string& key : e.keys)
    if (!e.read.contains(key) && !e.unread.contains(key)) silent.insert(key);
  for (const auto& [key, reason] : e.unread) {
    EXPECT_FALSE(reason.empty()) << key;
    if (e.read.contains(key)) stale.insert(key);
    if (!e.keys.contains(key)) gone.insert(key);
  }
  EXPECT_THAT(silent, IsEmpty()) << "no script reads these, and no row of the parameter table says why";
  EXPECT_THAT(stale, IsEmpty()) << "not_read lists these, but a script reads them";
  EXPECT_THAT(gone, IsEmpty()) << "not_read lists these, but settings.json does not have them";
}

TEST_P(RecipeSettings, DropoutIsApplied) {
  const Exported e = exported(GetParam());
  EXPECT_THAT(e.read, Contains("lora.dropout"));
  const fs::path templates = fs::path(MW_RESOURCES) / "recipes";
  for (const auto& entry : fs::recursive_directory_iterator(templates)) {
    if (entry.path().extension() != ".py") continue;
    EXPECT_FALSE(
        std::regex_search(read_file(entry.path()), std::regex(R"((SETTINGS|LORA|lora)\S*\["dropout"\]\s*=[^=])")))
        << entry.path() << " changes the experiment's dropout";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecipeSettings,
                         testing::Values(model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp),
                         [](const auto& i) {
                           std::string name(model::to_string(i.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace mw::jobs
