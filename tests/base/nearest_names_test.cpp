// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace mw {
namespace {

TEST(NearestNames, OrdersByEditDistanceThenAsGiven) {
  EXPECT_THAT(nearest_names("v5-8", {"2xh100", "v6e-8", "v5p-8", "v5e-8"}),
              testing::ElementsAre("v5p-8", "v5e-8", "v6e-8"));
  EXPECT_EQ(nearest_names_text("v5-8", {"2xh100", "v6e-8", "v5p-8", "v5e-8"}), "v5p-8, v5e-8 or v6e-8");
}

// Edit distance by its recursive definition.
size_t distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j)
      table[i][j] = i == 0 || j == 0 ? i + j
                                     : std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                                                 table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
  return table[a.size()][b.size()];
}

TEST(NearestNames, AgreesWithDefinitionOnRandomNames) {
  std::mt19937 random(7);
  const auto name = [&](size_t longest) {
    std::string text(random() % (longest + 1), ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 400; ++round) {
    const std::string wrong = "x" + name(63);  // no name starts with "x"
    std::vector<std::string> names;
    for (int i = 0; i < 12; ++i) names.push_back(name(70));
    std::vector<std::string> expected = names;
    std::stable_sort(expected.begin(), expected.end(), [&](const std::string& a, const std::string& b) {
      return distance(wrong, a) < distance(wrong, b);
    });
    EXPECT_EQ(nearest_names(wrong, names, names.size()), expected) << wrong;
  }
}

TEST(NearestNames, PrefersNamesStartingWithText) {
  EXPECT_THAT(nearest_names("v5", {"v2", "v3", "v5e", "v4", "v5p"}), testing::ElementsAre("v5e", "v5p", "v2"));
}

TEST(NearestNames, ReturnsNothingWithoutCandidates) {
  EXPECT_EQ(nearest_names_text("x", {}), "");
  EXPECT_EQ(nearest_names_text("", {"only"}), "only");
}

TEST(NearestNames, IsFastOnVeryLongName) {
  EXPECT_EQ(nearest_names_text(std::string(10'000'000, 'a'), {"aaa"}), "aaa");
}

}  // namespace
}  // namespace mw
