// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/mesh/layout/placement.h"

namespace mw::mesh {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    parse_spec(text);
  } catch (const Error& error) {
    return error.problem().id + " " + error.problem().place + " expected " + error.problem().expected;
  }
  return "accepted";
}

TEST(PartitionSpec, ReadsOwnAndJaxSyntax) {
  const PartitionSpec q{{{"tp"}, {"fsdp"}, {}}}, both{{{"data", "fsdp"}, {}}};
  EXPECT_EQ(parse_spec("(tp, fsdp, -)"), q);
  EXPECT_EQ(parse_spec(" ( tp ,fsdp,-, ) "), q);
  EXPECT_EQ(parse_spec("PartitionSpec('tp', 'fsdp', None)"), q);
  EXPECT_EQ(parse_spec("P((\"data\", \"fsdp\"), None)"), both);
  EXPECT_EQ(to_text(both), "((data, fsdp), -)");
  EXPECT_EQ(parse_spec("()"), PartitionSpec{});
  EXPECT_EQ(parse_spec("(tp)"), (PartitionSpec{{{"tp"}}}));
}

TEST(PartitionSpec, RoundTripsThroughText) {
  std::mt19937 random(3);
  const std::vector<std::string> names{"tp", "fsdp", "data", "x_1", "Long_name"};
  for (int round = 0; round < 500; ++round) {
    PartitionSpec spec;
    for (unsigned d = random() % 5; d-- > 0;) {
      spec.dims.emplace_back();
      for (unsigned a = random() % 4; a-- > 0;) spec.dims.back().push_back(names[random() % names.size()]);
    }
    EXPECT_EQ(parse_spec(to_text(spec)), spec) << to_text(spec);
  }
}

TEST(PartitionSpec, RejectsBadTextWithItsPosition) {
  EXPECT_EQ(refusal("tp, fsdp"), "SPEC-SYNTAX character 3 expected ( at the start");
  EXPECT_EQ(refusal("(tp fsdp)"), "SPEC-SYNTAX character 5 expected , or )");
  EXPECT_EQ(refusal("(tp, fsdp"), "SPEC-SYNTAX character 10 expected , or )");
  EXPECT_EQ(refusal("(tp)x"), "SPEC-SYNTAX character 5 expected nothing more after )");
  EXPECT_THAT(refusal("(tp, 'fsdp, -)"), HasSubstr("closing quote"));
  for (const char* text : {"", "(", "(,)", "((tp)", "(tp,,fsdp)", "(--)", "(\xff)", "(((tp)))"})
    EXPECT_THAT(refusal(text), HasSubstr("SPEC-SYNTAX")) << text;
  EXPECT_THAT(refusal("(" + std::string(1 << 20, 'a') + ")"), HasSubstr("1024"));
}

}  // namespace
}  // namespace mw::mesh
