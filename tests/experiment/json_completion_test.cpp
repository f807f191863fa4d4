// SPDX-License-Identifier: GPL-3.0-or-later

#include <gtest/gtest.h>

#include "core/experiment/schema.h"

namespace mw::experiment {
namespace {

// `text` has a | at the cursor. The first suggestions, and the text after the first was chosen.
struct Completed {
  std::string suggestions, text;
  bool is_key = false;
};
Completed completed(std::string text) {
  static const Json schema = experiment_schema();
  const size_t cursor = text.find('|');
  text.erase(cursor, 1);
  const JsonCompletion c = complete_json(schema, text, cursor);
  Completed out{{}, {}, c.is_key};
  for (size_t i = 0; i < std::min<size_t>(c.suggestions.size(), 3); ++i) out.suggestions += c.suggestions[i].text + " ";
  if (!c.suggestions.empty()) out.text = text.replace(c.begin, c.end - c.begin, c.replacement(0));
  return out;
}

TEST(JsonCompletion, SuggestsTheKeysOfTheSection) {
  EXPECT_EQ(completed(R"({"lora": {"ra|"}})").text, R"({"lora": {"rank": }})");
  EXPECT_EQ(completed(R"({"lora": {"ra|}})").text, R"({"lora": {"rank": }})");
  EXPECT_EQ(completed(R"({"lora": {ra|}})").text, R"({"lora": {"rank": }})");
  EXPECT_EQ(completed(R"({"lora": {"ra|": 4}})").text, R"({"lora": {"rank": 4}})");
  EXPECT_EQ(completed("{\"lora\": {\"ra|\n\"alpha\": 4}}").text, "{\"lora\": {\"rank\": \n\"alpha\": 4}}");
  EXPECT_EQ(completed(R"({"tra|)").text, R"({"train": )");
  EXPECT_TRUE(completed(R"({|)").is_key);
  EXPECT_EQ(completed(R"({"train": {"batc|"}})").suggestions, "\"batch\" ");
  EXPECT_EQ(completed(R"({"train": {"batch": 2, "batc|"}})").suggestions, "") << "keys in use are left out";
  EXPECT_EQ(completed(R"({"train": {"batc|", "batch": 2}})").suggestions, "");
}

TEST(JsonCompletion, SuggestsTheValuesOfTheKey) {
  EXPECT_EQ(completed(R"({"train": {"method": "f|"}})").text, R"({"train": {"method": "full"}})");
  EXPECT_EQ(completed(R"({"lora": {"dora": |}})").suggestions, "true false ");
  EXPECT_EQ(completed(R"({"lora": {"dora": t|}})").text, R"({"lora": {"dora": true}})");
  EXPECT_EQ(completed(R"({"schema": |)").suggestions, "1 ");
  EXPECT_FALSE(completed(R"({"schema": |)").is_key);
}

TEST(JsonCompletion, SuggestsNothingElsewhere) {
  for (const char* text : {"|", "|{}", "{}|", R"({"no such": {"|"}})", R"({"name": "a|"})",
                           R"({"lora": {"rank": {"|"}}})", R"({"lora": [{"|"}]})", "]}|", R"({"lora": {"zzz|"}})"})
    EXPECT_EQ(completed(text).suggestions, "") << text;
}

TEST(JsonCompletion, AnyTextAndPlaceAreSafe) {
  const Json schema = experiment_schema();
  const std::string text = "{\"lora\": {\"rank\": 4, \"al\n\"mesh\": [{]}, tru \"\\\" : ,, }}]";
  for (size_t end = 0; end <= text.size(); ++end)
    for (size_t cursor = 0; cursor <= text.size() + 1; ++cursor) {
      const JsonCompletion c = complete_json(schema, std::string_view(text).substr(0, end), cursor);
      EXPECT_LE(c.begin, c.end);
      EXPECT_LE(c.end, end);
    }
}

}  // namespace
}  // namespace mw::experiment
