// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/lengths.h"

#include <numeric>

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

TEST(Lengths, RoundTrip) {
  const Scratch scratch;
  const LengthCounts lengths{{1, 1}, {412, 3}, {4902, 1}, {1 << 20, 12345678901 / 10}};
  for (const char* name : {"a.json", "a.csv", "a.hist"}) {
    const auto file = scratch.path() / name;
    write_lengths(file, lengths, "\xffrows of a.jsonl");
    EXPECT_EQ(read_lengths(file), lengths) << name;
  }
}

TEST(Lengths, AcceptAnyOrderHeadersAndRepetitions) {
  const Scratch scratch;
  const LengthCounts expected{{3, 4}, {90, 1}};
  EXPECT_EQ(read_lengths(scratch.put("a.csv", "tokens,rows\n90,1\n\n3 , 2\r\n5,0\n3,2")), expected);
  EXPECT_EQ(read_lengths(scratch.put("a.txt", "3,4\n90,1\n")), expected);
  EXPECT_EQ(read_lengths(scratch.put("a.json", R"( {"source":"x","lengths":[[90,1],[3,2],[3,2],[5,0]]})")), expected);
}

TEST(Lengths, RejectInvalidHistograms) {
  const Scratch scratch;
  const auto place = [&](const std::string& name, const std::string& text) {
    const Problem p = problem_of([&] { read_lengths(scratch.put(name, text)); });
    EXPECT_EQ(p.id, "DATA-LENGTHS") << text;
    EXPECT_FALSE(p.expected.empty()) << text;
    EXPECT_NE(p.file.find(name), std::string::npos);
    return p.place;
  };
  EXPECT_EQ(place("a.csv", "tokens,rows\n4,1\n4;1\n"), "line 3");
  EXPECT_EQ(place("a.csv", "4,1\nfour,1\n"), "line 2");
  EXPECT_EQ(place("a.csv", "4,1\n0,1\n"), "line 2");
  EXPECT_EQ(place("a.csv", "4,-1\n"), "line 1");
  EXPECT_EQ(place("a.csv", "4,1.5\n"), "line 1");
  EXPECT_EQ(place("a.csv", "99999999999,1\n"), "line 1");
  EXPECT_EQ(place("a.csv", "4,10000000000\n5,1\n"), "line 2");  // the sum exceeds the limit
  EXPECT_EQ(place("a.csv", "tokens,rows\n"), "");
  EXPECT_EQ(place("a.json", R"({"lengths":[[4,1],[5]]})"), "lengths[1]");
  EXPECT_EQ(place("a.json", R"({"lengths":[[4,1],[5,"1"]]})"), "lengths[1]");
  EXPECT_EQ(place("a.json", R"({"lengths":[[18446744073709551615,1]]})"), "lengths[0]");
  EXPECT_EQ(place("a.json", R"({"rows":[]})"), "");
  EXPECT_EQ(place("a.json", "[[4,1]]"), "");
  EXPECT_EQ(problem_of([&] { read_lengths(scratch.put("a.json", "{\"lengths\": [[4,")); }).id, "JSON");
  EXPECT_EQ(problem_of([&] { read_lengths(scratch.path() / "none.csv"); }).id, "SYSTEM");
}

// Compares with the definition, row by row.
TEST(Lengths, StatisticsAndBinsMatchDefinition) {
  Rng rng{11};
  for (int round = 0; round < 50; ++round) {
    std::vector<int> rows;
    LengthCounts lengths;
    const auto n = 1 + rng.below(400);
    for (std::uint64_t i = 0; i < n; ++i) {
      rows.push_back(1 + static_cast<int>(rng.below(1 + rng.below(3000))));
      ++lengths[rows.back()];
    }
    std::sort(rows.begin(), rows.end());
    const LengthStats s = length_stats(lengths);
    const auto share_up_to = [&](int length) {
      return static_cast<double>(std::upper_bound(rows.begin(), rows.end(), length) - rows.begin()) /
             static_cast<double>(rows.size());
    };
    EXPECT_EQ(s.rows, std::ssize(rows));
    EXPECT_EQ(s.tokens, std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
    EXPECT_DOUBLE_EQ(s.mean, static_cast<double>(s.tokens) / static_cast<double>(s.rows));
    EXPECT_EQ(s.longest, rows.back());
    for (const auto& [value, share] : {std::pair{s.p50, 0.5}, std::pair{s.p95, 0.95}, std::pair{s.p99, 0.99}}) {
      EXPECT_GE(share_up_to(value), share - 1e-12);
      EXPECT_LT(share_up_to(value - 1), share);
    }
    const int upto = 1 + static_cast<int>(rng.below(3500));
    const LengthBins bins = length_bins(lengths, upto, 60);
    EXPECT_LE(bins.rows.size(), 60u);
    EXPECT_GE(static_cast<int>(bins.rows.size()) * bins.width, upto);
    EXPECT_EQ(std::accumulate(bins.rows.begin(), bins.rows.end(), bins.beyond), s.rows);
    for (size_t b = 0; b < bins.rows.size(); ++b)
      EXPECT_EQ(bins.rows[b], std::count_if(rows.begin(), rows.end(),
                                            [&](int length) { return length / bins.width == static_cast<int>(b); }));
  }
  EXPECT_EQ(length_stats({}).rows, 0);
}

TEST(Lengths, DropOrTruncateOverlongRows) {
  const LengthCounts lengths{{5, 2}, {9, 1}, {20, 1}};
  const auto lengths_of = [&](options::Overlong overlong) {
    std::vector<int> out;
    for (const ExampleSize& e : example_sizes(lengths, 9, overlong, 4)) out.push_back(e.tokens);
    return out;
  };
  EXPECT_EQ(lengths_of(options::Overlong::drop), (std::vector{5, 5, 9}));
  EXPECT_EQ(lengths_of(options::Overlong::truncate), (std::vector{5, 5, 9, 9}));
  EXPECT_EQ(problem_of([&] { example_sizes(lengths, 9, options::Overlong::drop, 3); }).id, "DATA-LENGTHS");
}

}  // namespace
}  // namespace mw::data::testing
