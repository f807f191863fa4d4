// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text.h"

#include <gtest/gtest.h>

#include "core/base/counted.h"

namespace mw {
namespace {

TEST(Counted, WritesOneWithoutThePlural) {
  EXPECT_EQ(counted(1, "device"), "1 device");
  EXPECT_EQ(counted(0, "device"), "0 devices");
  EXPECT_EQ(counted(2, "batch"), "2 batches");
  EXPECT_EQ(counted(3, "entry"), "3 entries");
  EXPECT_EQ(counted(3, "array"), "3 arrays");
  EXPECT_EQ(counted(std::string("1.2k"), "request"), "1.2k requests");
}

TEST(Text, PadsByCharactersNotBytes) {
  EXPECT_EQ(padded("12 \xC2\xB5s", 8), "   12 \xC2\xB5s");
  EXPECT_EQ(characters(padded("12 \xC2\xB5s", 8)), characters(padded("12 ms", 8)));
  EXPECT_EQ(padded("ab", -4), "ab  ");
  EXPECT_EQ(padded("abcdef", 3), "abcdef");
  EXPECT_EQ(table_row({{"a", 3}, {"\xC2\xB5", -2}, {"b", 0}}), "  a \xC2\xB5  b");
}

TEST(Text, CutsBetweenCharacters) {
  EXPECT_EQ(fitted("\xC2\xB5\xC2\xB5\xC2\xB5", 2), "\xC2\xB5\xC2\xB5");
  EXPECT_EQ(fitted("ab", 3), " ab");
  EXPECT_EQ(fitted("abcd", -3), "abc");
  EXPECT_EQ(fitted("", -2), "  ");
}

}  // namespace
}  // namespace mw
