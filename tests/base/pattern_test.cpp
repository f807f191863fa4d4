// SPDX-License-Identifier: Apache-2.0
#include "core/base/pattern.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace mw {
namespace {

TEST(Pattern, FullMatchCoversWholeTextAsInPython) {
  const Pattern p(".*q_einsum|.*kv_einsum");
  EXPECT_TRUE(p.matches("layers/0/attn/q_einsum"));
  EXPECT_TRUE(p.matches("layers/0/attn/kv_einsum"));
  EXPECT_FALSE(p.matches("layers/5/attn/k_einsum"));
  EXPECT_FALSE(p.matches("layers/0/attn/q_einsum/w"));
  EXPECT_FALSE(Pattern("q_einsum").matches("layers/0/attn/q_einsum"));
  // An earlier alternative that matches a part does not hide a later one that matches all.
  EXPECT_TRUE(Pattern("a|ab").matches("ab"));
}

TEST(Pattern, SearchFindsPartOfText) {
  EXPECT_TRUE(Pattern("attn", Extent::part).matches("layers/0/attn/q_einsum"));
  EXPECT_FALSE(Pattern("^attn", Extent::part).matches("layers/0/attn/q_einsum"));
  EXPECT_TRUE(Pattern(R"(layers\.(?!5\.)\d+\.)", Extent::part).matches("layers.4.q_proj"));
  EXPECT_FALSE(Pattern(R"(layers\.(?!5\.)\d+\.)", Extent::part).matches("layers.5.q_proj"));
}

TEST(Pattern, ReportsPositionOfSyntaxError) {
  try {
    const Pattern p("layers/(\\d+");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().id, "PATTERN");
    EXPECT_EQ(error.problem().place, "character 12");
    EXPECT_EQ(error.problem().found, "layers/(\\d+");
  }
  EXPECT_THROW(Pattern(std::string(5000, 'a')), Error);
  EXPECT_THROW(Pattern("\xff"), Error);
}

TEST(Pattern, LimitsBacktracking) {
  const std::string long_name(2000, 'a');
  for (const char* bad : {"(a+)+$b", "(a|aa)+$b", "((a*)*)*b", "(?:a?){500}a{500}b"}) {
    bool found = false;
    try {
      found = Pattern(bad, Extent::part).matches(long_name);
    } catch (const Error& error) {
      EXPECT_EQ(error.problem().id, "PATTERN-SLOW") << bad;
    }
    EXPECT_FALSE(found) << bad;
  }
  EXPECT_THROW(Pattern("(a+)+$").matches(long_name + "c"), Error);
  for (const char* bad : {"(", "[a", "*a", "", "\\C"}) EXPECT_THROW(Pattern{bad}, Error) << bad;
  EXPECT_FALSE(Pattern("a", Extent::part).matches("\xff\xfe"));
}

}  // namespace
}  // namespace mw
