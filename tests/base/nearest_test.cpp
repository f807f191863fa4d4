// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/nearest.h"

#include <gmock/gmock.h>

namespace mw {
namespace {

TEST(Nearest, OrdersByEditDistanceThenAsGiven) {
  EXPECT_THAT(nearest("v5-8", {"2xh100", "v6e-8", "v5p-8", "v5e-8"}), testing::ElementsAre("v5p-8", "v5e-8", "v6e-8"));
  EXPECT_EQ(nearest_text("v5-8", {"2xh100", "v6e-8", "v5p-8", "v5e-8"}), "v5p-8, v5e-8 or v6e-8");
}

TEST(Nearest, PrefersWhatTheNameBegins) {
  EXPECT_THAT(nearest("v5", {"v2", "v3", "v5e", "v4", "v5p"}), testing::ElementsAre("v5e", "v5p", "v2"));
}

TEST(Nearest, HasNothingToOfferFromNothing) {
  EXPECT_EQ(nearest_text("x", {}), "");
  EXPECT_EQ(nearest_text("", {"only"}), "only");
}

TEST(Nearest, IsNotSlowOnAVeryLongName) {
  EXPECT_EQ(nearest_text(std::string(10'000'000, 'a'), {"aaa"}), "aaa");
}

}  // namespace
}  // namespace mw
