// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw {
namespace {

Problem problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.problem();
  }
  return {};
}

Problem parse_problem(const std::string& text) {
  return problem_of([&] { parse_json(text, "in.json"); });
}

TEST(Json, KeepsKeyOrderAndValues) {
  const Json j = parse_json(R"({"z":1,"a":{"y":[1,2.5,null,true],"b":"\u00e4"},"m":-7})", "t");
  EXPECT_EQ(j.dump(), "{\"z\":1,\"a\":{\"y\":[1,2.5,null,true],\"b\":\"\xC3\xA4\"},\"m\":-7}");
}

TEST(Json, AgreesWithLibraryParser) {
  for (const char* text :
       {"null", "true", "-0.0", "18446744073709551615", "-9223372036854775808", "1e300", "\"\"", "[]", "{}",
        "[[],{},[{}],[[1],[2,[3]]]]", R"({"a":{},"b":[],"c":{"d":[{"e":null},[false]],"f":1}})",
        R"([{"a":[1,{"b":2}],"c":3},4,{"a":5}])", R"( { "\ud83d\ude00" : "\n\u0000" } )"}) {
    EXPECT_EQ(parse_json(text, "t"), Json::parse(text)) << text;
    EXPECT_EQ(parse_json(text, "t").dump(), Json::parse(text).dump()) << text;
    EXPECT_EQ(parse_sorted_json(text, "t").dump(), SortedJson::parse(text).dump()) << text;
  }
}

TEST(Json, ReportsLineAndColumnOfSyntaxErrors) {
  const Problem p = parse_problem("{\n  \"a\": 1,\n  \"b\": }\n");
  EXPECT_EQ(p.id, "JSON");
  EXPECT_EQ(p.file, "in.json");
  EXPECT_EQ(p.place, "line 3, column 8");
  EXPECT_EQ(parse_problem("[1, 2").place, "line 1, column 6");
  EXPECT_EQ(parse_problem("").place, "line 1, column 1");
}

TEST(Json, ReportsLineAndColumnOfTooLargeNumbers) {
  const Problem p = parse_problem("{\n  \"a\": [1, -1e999]}");
  EXPECT_EQ(p.place, "line 2, column 12");
  EXPECT_EQ(p.found, "-1e999");
  EXPECT_EQ(parse_problem("1e400").place, "line 1, column 1");
  EXPECT_EQ(parse_problem("[" + std::string(400, '9') + "]").found, std::string(57, '9') + "...");
}

TEST(Json, RejectsDuplicateKeys) {
  const Problem p = parse_problem("{\n  \"rank\": 1,\n  \"x\": {\"rank\": 3},\n  \"rank\": 2\n}");
  EXPECT_NE(p.message.find("duplicate key \"rank\""), std::string::npos);
  EXPECT_EQ(p.place, "line 4, column 3");
  EXPECT_EQ(parse_problem(R"([{"a":1},{"b":{"c":1,"d":[{"e":0,"e":1}]}}])").place, "line 1, column 34");
  EXPECT_EQ(parse_problem(R"({"a":1,"\u0061":2})").place, "line 1, column 8");  // the same key, spelled differently
  EXPECT_EQ(parse_problem(R"({"a":["a",{"b":"\"{,"}], "a""b"{"\)").place, "line 1, column 26");  // no colon after it
}

TEST(Json, AllowsSameKeyInDifferentObjects) {
  EXPECT_NO_THROW(parse_json(R"([{"a":1,"b":{"a":2}},{"a":3}])", "t"));
  EXPECT_NO_THROW(parse_json(R"({"a":"a","b":"a"})", "t"));
}

TEST(Json, RejectsDeepNesting) {
  const auto nested = [](const std::string& open, const std::string& close, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += open;
    text += "1";
    for (int i = 0; i < n; ++i) text += close;
    return text;
  };
  EXPECT_NO_THROW(parse_json(nested("[", "]", 200), "t"));
  EXPECT_EQ(parse_problem(nested("[", "]", 201)).id, "JSON");
  EXPECT_EQ(parse_problem(nested("[", "]", 201)).place, "line 1, column 201");
  EXPECT_EQ(parse_problem(nested("{\"a\":", "}", 201)).place, "line 1, column 1001");
  EXPECT_EQ(parse_problem("[\"[[\", [0],\n" + nested("[", "]", 200)).place, "line 2, column 200");
  EXPECT_NE(parse_problem(nested("[", "]", 5000000)).message.find("nesting"), std::string::npos);
  EXPECT_EQ(parse_problem(std::string(3000000, '[')).id, "JSON");
  EXPECT_NO_THROW(parse_json("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"", "t"));
}

TEST(Json, RejectsBrokenUtf8AndNumbers) {
  for (const char* text : {"\"\xff\"", "{\"a\":1e999}", "nul", "{\"a\" 1}", "[1,]", "{,}", "\"\\ud800\"", "01", "\x01"})
    EXPECT_EQ(parse_problem(text).id, "JSON") << text;
}

TEST(Json, MemberFunctionsCheckPresenceAndType) {
  const Json j{{"n", 3}, {"x", 2.5}, {"s", "text"}};
  EXPECT_EQ(int_member(j, "n", "f"), 3);
  EXPECT_EQ(number_member(j, "x", "f"), 2.5);
  EXPECT_EQ(string_member(j, "s", "f"), "text");
  EXPECT_EQ(problem_of([&] { member(j, "none", "f"); }).place, "none");
  EXPECT_EQ(problem_of([&] { int_member(j, "x", "f"); }).expected, "a whole number");
  EXPECT_EQ(problem_of([&] { number_member(j, "s", "f"); }).found, "\"text\"");
  EXPECT_EQ(problem_of([&] { string_member(j, "n", "f"); }).file, "f");
  EXPECT_EQ(problem_of([&] { list_member(j, "s", "f"); }).expected, "a list");
  EXPECT_EQ(problem_of([&] { member(Json::array(), "n", "f"); }).id, "JSON");
}

TEST(ValidUtf8, ReplacesInvalidBytesOnly) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("plain \xC3\xA4 \xE6\x97\xA5 \xF0\x9F\x98\x80"), "plain \xC3\xA4 \xE6\x97\xA5 \xF0\x9F\x98\x80");
  EXPECT_EQ(valid_utf8("cut \xE6\x97"), "cut " + bad + bad);
  EXPECT_EQ(valid_utf8("\x80x"), bad + "x");
  EXPECT_EQ(valid_utf8("\xC0\xAF"), bad + bad);                      // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80").size(), 4 * bad.size());  // beyond U+10FFFF
  EXPECT_EQ(valid_utf8(std::string("\0", 1)), std::string("\0", 1));
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string text{static_cast<char>(a), static_cast<char>(b)};
      ASSERT_NO_THROW(Json(valid_utf8(text)).dump()) << a << ' ' << b;
      const Json quoted(text);
      const bool good = valid_utf8(text) == text;
      bool dumps = true;
      try {
        quoted.dump();
      } catch (const Json::exception&) {
        dumps = false;
      }
      ASSERT_EQ(good, dumps) << a << ' ' << b;
    }
}

}  // namespace
}  // namespace mw
