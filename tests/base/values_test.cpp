// SPDX-License-Identifier: GPL-3.0-or-later
// Units, errors and ledgers.
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>

#include "core/base/error.h"
#include "core/base/ledger.h"
#include "core/base/units.h"

namespace mw {
namespace {

TEST(Units, BytesHaveBinaryPrefixesAndThreeDigits) {
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_text(Bytes(1024)), "1.00 KiB");
  EXPECT_EQ(to_text(Bytes(10240)), "10.0 KiB");
  EXPECT_EQ(to_text(Bytes(27LL * 1024 * 1024 * 1024 + 107374182)), "27.1 GiB");
  EXPECT_EQ(to_text(Bytes(-2048)), "-2.00 KiB");
  EXPECT_EQ(to_text(Bytes(std::numeric_limits<std::int64_t>::max())), "8192 PiB");
}

TEST(Units, SecondsUseReadableUnits) {
  EXPECT_EQ(to_text(Seconds(0.00000123)), "1.23 \u00b5s");
  EXPECT_EQ(to_text(Seconds(0.35)), "350 ms");
  EXPECT_EQ(to_text(Seconds(9.8)), "9.80 s");
  EXPECT_EQ(to_text(Seconds(102)), "1:42");
  EXPECT_EQ(to_text(Seconds(11110)), "3:05:10");
  EXPECT_EQ(to_text(Seconds(-102)), "-1:42");
  EXPECT_EQ(to_text(Seconds(std::numeric_limits<double>::quiet_NaN())), "unknown");
}

TEST(Units, FormatsCountsMoneyAndNumbers) {
  EXPECT_EQ(to_text(Usd(56.9)), "$56.90");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(12345), "12.3k");
  EXPECT_EQ(count_text(4.63e9), "4.63B");
  EXPECT_EQ(count_text(999.6), "1.00k");
  EXPECT_EQ(number_text(1234), "1234");
  EXPECT_EQ(number_text(1523.4, 2), "1500");
  EXPECT_EQ(number_text(-2512.6, 3), "-2510");
  EXPECT_EQ(number_text(14750.2), "14750");
  EXPECT_EQ(number_text(1e-5, 3), "1e-05");
  EXPECT_EQ(number_text(2e15), "2e+15");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(Units, ArithmeticKeepsTypes) {
  EXPECT_EQ(Bytes(3) + Bytes(4) - Bytes(2), Bytes(5));
  EXPECT_EQ(Bytes(3) * 4, Bytes(12));
  EXPECT_DOUBLE_EQ(Bytes(3) / Bytes(4), 0.75);
  EXPECT_LT(Seconds(1), Seconds(2));
}

TEST(ErrorText, ContainsFilePlaceFoundExpectedAndFix) {
  const Problem p{.id = "X",
                  .message = "not valid JSON",
                  .file = "data.jsonl",
                  .place = "line 12",
                  .found = "}",
                  .expected = "a value",
                  .fix = "repair the line"};
  EXPECT_EQ(to_text(p), "data.jsonl, line 12: not valid JSON (found: }; expected: a value). Fix: repair the line");
  EXPECT_EQ(to_text({.message = "alone"}), "alone");
  EXPECT_STREQ(Error(p).what(), to_text(p).c_str());
  EXPECT_EQ(Error(p).kind(), Error::Kind::bad_input);
  EXPECT_EQ(cancelled("the run").kind(), Error::Kind::cancelled);
  EXPECT_FALSE(system_error("cannot write", "f", ENOSPC).problem().fix.empty());
  EXPECT_EQ(system_error("cannot open", "f", ENOENT).kind(), Error::Kind::bad_input);
}

TEST(Ledger, NamesRoundTripAndTotalsAdd) {
  Ledger ledger;
  std::int64_t expected = 0;
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    EXPECT_EQ(parse<MemoryCategory>(to_string(category)), category);
    ledger[category] = Bytes(static_cast<std::int64_t>(1) << i);
    expected += 1 << i;
  }
  EXPECT_EQ(ledger.total(), Bytes(expected));
  EXPECT_FALSE(parse<MemoryCategory>("total"));
}

}  // namespace
}  // namespace mw
