// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/layout/sharding_options.h"

#include <gmock/gmock.h>

#include "core/base/text.h"

namespace mw::mesh {
namespace {

using testing::HasSubstr;

TEST(UnusedAxes, ReportsMistypedAxisWithTheIntendedOne) {
  for (const char* wrong : {"fdsp", "fsp", "fsdpp", "FSDP", "fspd"}) {
    const auto problems = find_unused_axes({{{"tp", 2}, {wrong, 2}}}, {});
    ASSERT_EQ(problems.size(), 1u) << wrong;
    EXPECT_EQ(problems[0].severity, Severity::error);
    EXPECT_EQ(problems[0].place, std::string("mesh.") + wrong);
    EXPECT_THAT(problems[0].fix, HasSubstr("did you mean fsdp? Set mesh.fsdp=2"));
  }
  EXPECT_EQ(intended_axis("pt"), "tp");
  EXPECT_EQ(intended_axis("date"), "data");
}

TEST(UnusedAxes, AcceptsCustomAxesThatARuleUses) {
  const Mesh mesh{{{"fsdp", 2}, {"ep", 4}, {"spare", 1}}};
  const auto unnamed = find_unused_axes(mesh, {});
  ASSERT_EQ(unnamed.size(), 1u);  // an axis of one device repeats nothing
  EXPECT_EQ(unnamed[0].severity, Severity::warning);
  EXPECT_EQ(unnamed[0].found, "ep");
  EXPECT_TRUE(find_unused_axes(mesh, {.overrides = {{"experts", parse_spec("(ep, -, -)")}}}).empty());
}

TEST(UnusedAxes, AcceptsOneTypingErrorOnly) {
  EXPECT_TRUE(is_likely_typo("fdsp", "fsdp"));
  EXPECT_TRUE(is_likely_typo("Data", "data"));
  EXPECT_FALSE(is_likely_typo("ep", "tp"));
  EXPECT_FALSE(is_likely_typo("dp", "tp"));
  EXPECT_FALSE(is_likely_typo("dp", "fsdp"));
  EXPECT_FALSE(is_likely_typo("expert", "fsdp"));
  EXPECT_FALSE(is_likely_typo("", "tp"));
}

}  // namespace
}  // namespace mw::mesh
