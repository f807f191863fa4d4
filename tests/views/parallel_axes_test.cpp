// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/parallel_axes.h"

#include <gmock/gmock.h>

namespace mw::views {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ParallelRun parallel_run(const std::string& rate, const std::string& targets, std::optional<double> loss) {
  return {.settings = {{"train.learning_rate", rate}, {"lora.targets", targets}, {"train.batch", "8"}},
          .results = {{"Eval loss", "nats/token", loss}, {"Right answers", "%", std::nullopt}}};
}

std::vector<std::string> labels(const std::vector<ParallelAxis>& axes) {
  std::vector<std::string> out;
  for (const ParallelAxis& axis : axes) out.push_back(axis.label);
  return out;
}

TEST(ParallelAxes, AreSettingsThatDifferAndResultsThatExist) {
  const auto axes = parallel_axes(
      {parallel_run("0.001", "q", 2.0), parallel_run("0.1", "q,v", std::nullopt), parallel_run("0.01", "q", 4.0)});
  ASSERT_THAT(labels(axes), ElementsAre("Learning rate", "Targets", "Eval loss"));
  EXPECT_TRUE(axes[0].is_log);
  EXPECT_EQ(axes[0].places[0], 0.0);
  EXPECT_EQ(axes[0].places[1], 1.0);
  EXPECT_NEAR(*axes[0].places[2], 0.5, 1e-12);
  EXPECT_THAT(axes[1].places, ElementsAre(0.0, 1.0, 0.0));
  EXPECT_EQ(axes[1].stops[1].text, "q,v");
  EXPECT_TRUE(axes[2].is_result);
  EXPECT_FALSE(axes[2].is_log);
  EXPECT_THAT(axes[2].places, ElementsAre(0.0, std::nullopt, 1.0));
}

TEST(ParallelAxes, HaveFewStopsAndOnePlaceForEqualResults) {
  std::vector<ParallelRun> runs;
  for (int i = 1; i <= 9; ++i) runs.push_back(parallel_run(std::to_string(i), "q", 3.0));
  const auto axes = parallel_axes(runs);
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].stops.size(), 3u);
  EXPECT_EQ(axes[0].stops[1].text, "5");
  EXPECT_EQ(axes[1].places[4], 0.5);
  EXPECT_THAT(parallel_axes({}), IsEmpty());
}

}  // namespace
}  // namespace mw::views
