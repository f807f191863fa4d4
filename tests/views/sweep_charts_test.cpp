// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/sweep_view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mw::views {
namespace {

formats::BenchPoint point(double rate, int input_len = 512) {
  formats::BenchPoint p;
  p.request_rate = rate, p.input_len = input_len;
  return p;
}

TEST(LoadAxis, OrdersRatesBurstsUsersAndUnknownRates) {
  formats::BenchPoint users = point(formats::kUnknown), unknown = point(formats::kUnknown);
  users.max_concurrency = 32;
  LoadAxis axis;
  for (const auto& p : {unknown, point(INFINITY), point(8), users, point(2)}) axis.add(p);
  const auto stops = axis.stops();
  ASSERT_EQ(stops.size(), 5u);
  EXPECT_EQ(stops[0].label, "2");
  EXPECT_DOUBLE_EQ(stops[0].place, 1);
  EXPECT_EQ(stops[1].label, "8");
  EXPECT_DOUBLE_EQ(stops[1].place, 3);
  EXPECT_EQ(stops[2].label, "burst");
  EXPECT_EQ(stops[3].label, "32 users");
  EXPECT_EQ(stops[4].label, "n/a");
  for (size_t i = 1; i < stops.size(); ++i) EXPECT_GT(stops[i].place, stops[i - 1].place);
  EXPECT_DOUBLE_EQ(axis.place(users), stops[3].place);
  EXPECT_EQ(axis.rate_at(3), 8);
  EXPECT_FALSE(axis.rate_at(stops[2].place));
}

TEST(SweepCharts, RepeatsFormOneSampleWithASpread) {
  formats::BenchSet set;
  for (const double ttft : {40.0, 60.0}) {
    set.points.push_back(point(4));
    set.points.back().ttft.median = ttft;
    set.points.back().ttft.percentiles[99] = ttft * 3;
  }
  set.points.push_back(point(8));  // says nothing
  LoadAxis axis;
  for (const auto& p : set.points) axis.add(p);
  const auto samples = samples_of(
      set, {0, 1, 2}, [&](const auto& p) { return axis.place(p); }, SweepMetric::ttft);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_DOUBLE_EQ(samples[0].value, 0.050);
  EXPECT_DOUBLE_EQ(samples[0].low, 0.040);
  EXPECT_DOUBLE_EQ(samples[0].high, 0.180);
  EXPECT_EQ(samples[0].points, (std::vector<size_t>{0, 1}));
  EXPECT_TRUE(std::isnan(samples[1].value));
}

TEST(SweepCharts, UsesTheMeanWithoutAMedian) {
  formats::BenchPoint p = point(1);
  p.tpot.mean = 13.5;
  EXPECT_DOUBLE_EQ(metric_value(p, SweepMetric::tpot, formats::kUnknown).value, 0.0135);
  EXPECT_TRUE(std::isnan(metric_value(p, SweepMetric::tpot, formats::kUnknown).high));
}

TEST(SweepCharts, CostPerMillionTokensFollowsFromPriceAndThroughput) {
  formats::BenchPoint p = point(1);
  p.output_throughput = 1403;
  EXPECT_NEAR(metric_value(p, SweepMetric::cost, 21.52).value, 21.52 / (1403 * 3600) * 1e6, 1e-12);
  p.output_throughput = 0;
  EXPECT_TRUE(std::isnan(metric_value(p, SweepMetric::cost, 21.52).value));
}

TEST(SweepCharts, VerdictNamesTheOverloadRate) {
  formats::BenchSet set;
  const char* verdicts[] = {"stable", "stable", "backlogged", "overloaded", "overloaded"};
  SweepLine line{.input_len = 512, .points = {}, .capacity = {}};
  for (int i = 0; i < 5; ++i) {
    set.points.push_back(point(1 << i));
    set.points.back().verdict = verdicts[i];
    line.points.push_back(static_cast<size_t>(i));
  }
  line.capacity.knee = 3.25;
  EXPECT_EQ(verdict_text(set, line, {}),
            "stable to 2 requests/s, backlogged from 4 requests/s, overloaded from 8 requests/s, knee at 3.25");
  EXPECT_TRUE(verdict_text(set, line, {.ttft_ms = 100}).ends_with("no rate meets the SLO"));
  line.capacity.at_slo = 2.5;
  EXPECT_TRUE(verdict_text(set, line, {.ttft_ms = 100}).ends_with("meets the SLO to 2.5 requests/s"));
  line.capacity.beyond_last = true;
  EXPECT_TRUE(verdict_text(set, line, {.ttft_ms = 100})
                  .ends_with("meets the SLO to 2.5 requests/s, the highest that was offered"));
}

TEST(SweepCharts, VerdictNamesThePointsThatAreTooShort) {
  formats::BenchSet set;
  for (const double rate : {1, 64}) {
    set.points.push_back(point(rate));
    set.points.back().verdict = "stable";
    set.points.back().request_throughput = 1;
  }
  EXPECT_EQ(verdict_text(set, {.input_len = 512, .points = {0, 1}, .capacity = {}}, {}),
            "stable to 1 requests/s, stable, too short from 64 requests/s");
}

TEST(SweepCharts, MarksTheWorstFindingOfAMetric) {
  const std::vector<audit::AuditFinding> all{
      {0, "MONOTONY", "median_ttft_ms", 1, 2, audit::Verdict::suspicious, "a", ""},
      {0, "FLOOR-PREFILL", "median_ttft_ms", 1, 2, audit::Verdict::impossible, "b", ""},
      {0, "FLOOR-DECODE", "median_tpot_ms", 1, 2, audit::Verdict::fine, "c", ""},
      {1, "UNITS", "median_ttft_ms", 1, 2, audit::Verdict::impossible, "d", ""}};
  EXPECT_EQ(worst_finding(all, 0, "ttft")->text, "b");
  EXPECT_EQ(worst_finding(all, 0, "tpot"), nullptr);
  EXPECT_EQ(worst_finding(all, 2, "ttft"), nullptr);
}

TEST(SweepCharts, PhasesAreOrderedWhenTimesAreMissing) {
  formats::RequestResult r;
  r.intended_s = 1, r.sent_s = 1.5, r.first_token_s = 3, r.end_s = 5;
  RequestPhases p = phases_of(r);
  EXPECT_FALSE(p.queue_known);
  EXPECT_DOUBLE_EQ(p.scheduled, 1.5);
  r.scheduled_s = 2;
  p = phases_of(r);
  EXPECT_TRUE(p.queue_known);
  EXPECT_DOUBLE_EQ(p.scheduled, 2);
  r.error = "429", r.first_token_s = r.end_s = formats::kUnknown;
  p = phases_of(r);
  EXPECT_TRUE(p.failed);
  EXPECT_DOUBLE_EQ(p.end, 2);
}

}  // namespace
}  // namespace mw::views
