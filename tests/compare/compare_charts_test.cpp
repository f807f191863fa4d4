// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/compare/compare_charts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace mw::compare {
namespace {

formats::BenchPoint point(int input_len, double rate, double ttft_ms, double output_throughput) {
  formats::BenchPoint p;
  p.input_len = input_len, p.request_rate = rate, p.ttft.median = ttft_ms, p.output_throughput = output_throughput;
  return p;
}

ComparedRun column(std::string name, std::vector<formats::BenchPoint> points, double usd_per_hour = formats::kUnknown) {
  views::SweepView view;
  view.set.name = name, view.set.points = std::move(points), view.set.usd_per_hour = usd_per_hour;
  for (size_t i = 0; i < view.set.points.size(); ++i) {
    auto at = std::find_if(view.lines.begin(), view.lines.end(),
                           [&](const views::SweepLine& l) { return l.input_len == view.set.points[i].input_len; });
    if (at == view.lines.end())
      at = view.lines.insert(at, {.input_len = view.set.points[i].input_len, .points = {}, .capacity = {}});
    at->points.push_back(i);
  }
  ComparedRun c;
  c.name = std::move(name), c.sweep = std::move(view);
  return c;
}

TEST(CompareCharts, RunsWithDifferentRatesShareOneAxis) {
  const std::vector<ComparedRun> runs{column("a", {point(512, 1, 40, 100), point(512, 4, 80, 300)}),
                                      column("b", {point(512, 2, 30, 150), point(1024, 1, 60, 90)}),
                                      column("c", {point(1024, 1, 70, 80)})};
  EXPECT_EQ(input_lens(runs), (std::vector<int>{512, 1024}));
  const views::LoadAxis axis = load_axis(runs);
  EXPECT_EQ(axis.stops().size(), 3u);
  const auto lines = lines_by_load(runs, 512, axis, views::SweepMetric::ttft);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].column, 1u);
  EXPECT_DOUBLE_EQ(lines[1].samples[0].place, 1);
  EXPECT_DOUBLE_EQ(lines[1].samples[0].value, 0.030);
}

TEST(CompareCharts, InitialSelectionIsTheMostCommonLengthAndLoad) {
  const std::vector<ComparedRun> runs{
      column("a", {point(128, 10000, 40, 100), point(4096, 4, 80, 300), point(1024, 4, 80, 300)}),
      column("b", {point(4096, 4, 30, 150), point(4096, 8, 60, 90)})};
  EXPECT_EQ(usual_input_len(runs), 4096);
  EXPECT_EQ(usual_load(runs), "4 requests/s");
  EXPECT_EQ(load_axis(runs).stops().size(), 3u);
  EXPECT_EQ(load_axis(runs, 4096).stops().size(), 2u) << "no tick for a load that this length has not met";
  EXPECT_EQ(usual_input_len({}), 0);
  EXPECT_EQ(usual_load({}), "");
}

TEST(CompareCharts, LinesByLengthFallBackToTheLowestLoad) {
  const std::vector<ComparedRun> runs{
      column("a", {point(512, 1, 40, 100), point(512, 4, 80, 300), point(4096, 1, 400, 90)})};
  const auto lines = lines_by_length(runs, "4 requests/s", views::SweepMetric::ttft);
  ASSERT_EQ(lines[0].samples.size(), 2u);
  EXPECT_DOUBLE_EQ(lines[0].samples[0].place, 9);
  EXPECT_DOUBLE_EQ(lines[0].samples[0].value, 0.080);
  EXPECT_DOUBLE_EQ(lines[0].samples[1].value, 0.400);
}

TEST(CompareCharts, CurveTurnsBackWhenThroughputFalls) {
  const std::vector<ComparedRun> runs{
      column("a", {point(512, 1, 40, 100), point(512, 8, 90, 700), point(512, 16, 900, 600)})};
  const auto curves = latency_against_throughput(runs, 512, views::SweepMetric::ttft);
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].path.size(), 3u);
  EXPECT_GT(curves[0].path[1].x, curves[0].path[2].x);
  EXPECT_GT(curves[0].path[2].y, curves[0].path[1].y);
}

TEST(CompareCharts, DistributionReachesOneWithoutFailedRequests) {
  formats::BenchPoint p = point(512, 1, 0, 0);
  for (const double first : {0.1, 0.2, 0.2, 0.4}) {
    formats::RequestResult r;
    r.first_token_s = first, r.end_s = first + 1, r.output_tokens = 11;
    p.requests.push_back(r);
  }
  p.requests.push_back(p.requests.front());
  p.requests.back().error = "500";
  const auto path = cumulative(request_values(p, views::SweepMetric::ttft));
  ASSERT_EQ(path.size(), 3u);
  EXPECT_DOUBLE_EQ(path[0].y, 0.25);
  EXPECT_DOUBLE_EQ(path[1].y, 0.75);
  EXPECT_DOUBLE_EQ(path[2].y, 1);
  for (const double v : request_values(p, views::SweepMetric::tpot)) EXPECT_NEAR(v, 0.1, 1e-12);
}

TEST(CompareCharts, HeatMapHasValueChangeAndMarkOfEveryCell) {
  std::vector<ComparedRun> runs{column("a", {point(512, 1, 100, 1), point(512, 4, 200, 1)}),
                                column("b", {point(512, 1, 25, 1)})};
  runs[1].sweep->findings.push_back(
      {0, "FLOOR-PREFILL", "median_ttft_ms", 25, 80, audit::Verdict::impossible, "below the floor", ""});
  const HeatMap map = heat_map(runs, 1, views::SweepMetric::ttft);
  ASSERT_EQ(map.loads.size(), 2u);
  EXPECT_DOUBLE_EQ(map.at(0, 0).value, 0.025);
  EXPECT_DOUBLE_EQ(map.at(0, 0).change, -0.75);
  EXPECT_EQ(map.at(0, 0).mark, "below the floor");
  EXPECT_TRUE(std::isnan(map.at(0, 1).value));
}

TEST(CompareCharts, BreakEvenIsWhereTotalCostsAreEqual) {
  const std::vector<ComparedRun> runs{column("tpu", {point(512, 1, 1, 1000)}, 20),
                                      column("gpu", {point(512, 1, 1, 1500)}, 30),
                                      column("no price", {point(512, 1, 1, 1)})};
  auto costs = serving_costs(runs, 0, {160, 60});
  ASSERT_EQ(costs.size(), 2u);
  ASSERT_TRUE(break_even(costs[0], costs[1]));
  EXPECT_DOUBLE_EQ(*break_even(costs[0], costs[1]), 10);
  EXPECT_DOUBLE_EQ(costs[0].at(10), costs[1].at(10));
  costs = serving_costs(runs, 3000, {160, 60});
  EXPECT_EQ(costs[0].servers, 3);
  EXPECT_EQ(costs[1].servers, 2);
  EXPECT_FALSE(break_even(costs[0], costs[1]));  // the same price an hour now
}

TEST(CompareCharts, ParetoFrontKeepsPointsThatNoOtherBeats) {
  const std::vector<ComparedCurve> curves{{0, {{100, 1}, {200, 2}, {300, 9}}, {}}, {1, {{150, 3}, {300, 4}}, {}}};
  const auto front = pareto_front(curves);
  ASSERT_EQ(front.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(front[i].x, 100.0 * static_cast<double>(i + 1));
    EXPECT_EQ(front[i].y, (std::vector<double>{1, 2, 4})[i]);
  }
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(Comparison, EqualNamesOfSetsAreToldApartByTheirConditions) {
  std::vector<ComparedRun> runs{column("a", {point(512, 1, 40, 100)}), column("a", {point(512, 1, 30, 100)})};
  runs[0].sweep->set.conditions["kv_dtype"] = "bf16";
  runs[1].sweep->set.conditions["kv_dtype"] = "fp8";
  EXPECT_EQ(distinct_names(runs), (std::vector<std::string>{"a kv_dtype bf16", "a kv_dtype fp8"}));
  runs[1].sweep->set.conditions = {{"kv_dtype", "bf16"}, {"calibration", "a sentence about the rates of a machine"}};
  runs[1].provenance = formats::ResultProvenance::predicted;
  EXPECT_EQ(distinct_names(runs)[1], "a numbers predicted");
  runs[1].name = "b";
  EXPECT_EQ(distinct_names(runs), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace mw::compare
