// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/sweep_view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mw::views {
namespace {

formats::BenchPoint point(int input_len, double rate, double ttft_ms) {
  formats::BenchPoint p;
  p.input_len = input_len, p.output_len = 64, p.request_rate = rate;
  p.num_prompts = p.completed = 200, p.duration_s = 200 / rate;
  p.total_input_tokens = 200L * input_len, p.total_output_tokens = 200 * 64;
  p.request_throughput = rate, p.output_throughput = 64 * rate;
  p.ttft.median = ttft_ms, p.tpot.median = 10, p.verdict = "stable";
  return p;
}

RunView run_of(const std::vector<formats::BenchPoint>& points) {
  formats::BenchSet set;
  set.model = "gemma3-1b", set.target = "v6e-8", set.provenance = formats::ResultProvenance::predicted;
  RunView view;
  view.feed({0, event::Started{Json{{"kind", "sweep"},
                                    {"name", "mine"},
                                    {"slo", {{"ttft_ms", 100}}},
                                    {"set", formats::to_json(set, formats::Detail::summary)}}}});
  long step = 0;
  for (const auto& p : points)
    view.feed({1.0, event::ResultPoint{++step, "sweep", formats::to_json(p, formats::Detail::requests)}});
  return view;
}

TEST(SweepView, SortsLinesByInputLengthAndPointsByRate) {
  const RunView run = run_of({point(1024, 4, 90), point(512, 8, 60), point(512, 1, 40), point(1024, 1, 50)});
  const SweepView view = sweep_view(run);
  EXPECT_EQ(view.set.name, "mine");
  EXPECT_EQ(view.set.target, "v6e-8");
  EXPECT_EQ(view.set.provenance, formats::ResultProvenance::predicted);
  ASSERT_EQ(view.lines.size(), 2u);
  EXPECT_EQ(view.lines[0].input_len, 512);
  EXPECT_EQ(view.lines[0].points, (std::vector<size_t>{2, 1}));
  EXPECT_EQ(view.lines[1].points, (std::vector<size_t>{3, 0}));
  EXPECT_EQ(view.slo.ttft_ms, 100);
}

TEST(SweepView, CapacityUsesThePointsOfTheLine) {
  const SweepView view =
      sweep_view(run_of({point(512, 1, 40), point(512, 8, 60), point(1024, 1, 50), point(1024, 9, 150)}));
  ASSERT_EQ(view.lines.size(), 2u);
  EXPECT_TRUE(view.lines[0].capacity.beyond_last);
  EXPECT_FALSE(view.lines[1].capacity.beyond_last);
  EXPECT_NEAR(view.lines[1].capacity.at_slo, 5, 1e-9);  // half way between 50 and 150 ms
}

TEST(SweepView, CountsAndIgnoresInvalidPoints) {
  RunView run = run_of({point(512, 1, 40)});
  run.feed({2, event::ResultPoint{2, "sweep", Json{{"completed", "many"}}}});
  run.feed({3, event::ResultPoint{3, "size", Json{{"batch", 1}}}});
  const SweepView view = sweep_view(run);
  EXPECT_EQ(view.set.points.size(), 1u);
  EXPECT_EQ(view.ignored, 1u);
}

TEST(SweepView, AcceptsARunWithoutASet) {
  RunView run;
  run.feed({0, event::Started{Json{{"set", 7}, {"slo", "none"}}}});
  const SweepView view = sweep_view(run);
  EXPECT_TRUE(view.lines.empty());
  EXPECT_FALSE(view.slo.any());
}

}  // namespace
}  // namespace mw::views
