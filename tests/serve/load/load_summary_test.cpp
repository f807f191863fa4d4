// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "core/base/rng.h"
#include "core/serve/load/saturation.h"
#include "core/serve/load/sweep.h"

namespace mw::serve {
namespace {

using formats::RequestResult;

RequestResult completed(double intended, double sent, double first, std::vector<float> gaps_ms) {
  RequestResult r{.intended_s = intended, .sent_s = sent, .first_token_s = first, .end_s = first};
  for (const float gap : gaps_ms) r.end_s += gap * 1e-3;
  r.prompt_tokens = 10, r.output_tokens = static_cast<int>(gaps_ms.size()) + 1;
  r.gaps_ms = std::move(gaps_ms);
  return r;
}

Load load_of(int requests, options::LoadSettings settings = {}) {
  settings.num_prompts = requests;
  return make_load(settings);
}

TEST(LoadSummary, MatchesHandComputedMetrics) {
  LoadResult result{
      .requests = {completed(0, 0, 0.5, {100, 300}), completed(0.1, 0.4, 0.6, {200}), completed(1, 1, 1.2, {})},
      .duration_s = 2};
  RequestResult failed{.intended_s = 1.5, .sent_s = 1.5, .end_s = 1.50001, .prompt_tokens = 99, .error = "HTTP 500"};
  result.requests.push_back(failed);
  const auto p = summarise(load_of(4), result, {.ttft_ms = 490, .tpot_ms = 210});
  EXPECT_EQ(p.num_prompts, 4);
  EXPECT_EQ(p.completed, 3);
  EXPECT_EQ(p.failed, 1);
  EXPECT_EQ(p.total_input_tokens, 30);
  EXPECT_EQ(p.total_output_tokens, 6);
  EXPECT_DOUBLE_EQ(p.request_throughput, 1.5);
  EXPECT_DOUBLE_EQ(p.output_throughput, 3);
  EXPECT_DOUBLE_EQ(p.total_token_throughput, 18);
  EXPECT_DOUBLE_EQ(p.request_goodput, 0.5)
      << "two miss the TTFT limit from their intended time, one of them by waiting in the client";
  EXPECT_NEAR(p.ttft.mean, (500 + 200 + 200) / 3.0, 1e-6);
  EXPECT_NEAR(p.intended_ttft.mean, (500 + 500 + 200) / 3.0, 1e-6);
  EXPECT_NEAR(p.tpot.mean, (200 + 200) / 2.0, 1e-4);
  EXPECT_NEAR(p.itl.mean, 200, 1e-4);
  EXPECT_NEAR(p.e2el.mean, (900 + 400 + 200) / 3.0, 1e-4);
  EXPECT_EQ(p.max_concurrent_requests, 2);
  EXPECT_EQ(p.max_output_tokens_per_s, 5) << "at 0.5, 0.6, 0.9 and 0.6, 0.8 s";
}

TEST(LoadSummary, PercentilesMatchNumpy) {
  LoadResult result{.requests = {}, .duration_s = 10};
  for (int i = 0; i < 5; ++i) result.requests.push_back(completed(i, i, i + 0.1 * (i + 1), {}));
  const auto p = summarise(load_of(5), result, {});
  EXPECT_NEAR(p.ttft.median, 300, 1e-9);
  EXPECT_NEAR(p.ttft.percentile(99), 496, 1e-9);  // numpy.percentile([100, 200, 300, 400, 500], 99)
  EXPECT_NEAR(p.ttft.percentile(25), 200, 1e-9);
  EXPECT_TRUE(std::isnan(p.request_goodput)) << "no SLO, no goodput";
}

TEST(LoadSummary, HasNoLatenciesIfAllRequestsFailed) {
  LoadResult result{.requests = {{.sent_s = 0, .error = "rejected"}}, .duration_s = 1};
  const auto p = summarise(load_of(1), result, {});
  EXPECT_EQ(p.failed, 1);
  EXPECT_FALSE(p.ttft.known());
  EXPECT_EQ(p.verdict, "");
  EXPECT_EQ(p.output_throughput, 0);
}

TEST(LoadSummary, BestSecondNeedsTheTimesOfAllTokens) {
  LoadResult result{.requests = {completed(0, 0, 0.5, {100, 100}), completed(0, 0, 0.5, {})}, .duration_s = 1};
  result.requests[1].output_tokens = 7;
  EXPECT_TRUE(std::isnan(summarise(load_of(2), result, {}).max_output_tokens_per_s));
}

// Serves the load first come, first served, by `slots` servers that each take `service` seconds per request.
LoadResult queue_at(const Load& load, int slots, double service, bool random_service = false) {
  LoadResult result;
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (int i = 0; i < slots; ++i) free.push(0);
  Rng rng{load.settings.seed, 99};
  for (const TimedRequest& t : load.requests) {
    const double start = std::max(t.at_s, free.top());
    free.pop();
    const double time = service * (random_service ? -std::log(1 - rng.next_uniform()) : 1);
    RequestResult r = completed(t.at_s, t.at_s, start + 0.1 * time, {static_cast<float>(900 * time)});
    r.scheduled_s = start;
    free.push(r.end_s);
    result.duration_s = std::max(result.duration_s, r.end_s);
    result.requests.push_back(r);
  }
  return result;
}

TEST(Saturation, FollowsTheUtilisationOfAQueueForAllSeeds) {
  int wrong_stable = 0, wrong_overloaded = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    for (const bool random : {false, true}) {
      const auto verdict = [&](double rho, int requests) {
        const Load load = load_of(requests, {.request_rate = 10 * rho, .seed = seed});
        return judge_saturation(load, queue_at(load, 10, 1, random));
      };
      wrong_stable += verdict(0.3, 500) != Saturation::stable;
      wrong_stable += verdict(0.6, 500) != Saturation::stable;
      wrong_overloaded += verdict(1.3, 500) != Saturation::overloaded;
      wrong_overloaded += verdict(2, 200) != Saturation::overloaded;
    }
  EXPECT_LE(wrong_stable, 2) << "of 160";
  EXPECT_LE(wrong_overloaded, 2) << "of 160";
}

TEST(Saturation, PartlyDrainedQueueIsBacklogged) {
  Load load = load_of(400, {.arrival = options::Arrival::constant, .request_rate = 9});
  // 100 at once, then less than the server can do.
  for (size_t i = 0; i < 400; ++i) load.requests[i].at_s = i < 100 ? 0 : static_cast<double>(i - 100) / 9;
  EXPECT_EQ(judge_saturation(load, queue_at(load, 10, 1)), Saturation::backlogged);
}

TEST(Saturation, FailedRequestsAreOverload) {
  const Load load = load_of(100, {.request_rate = 3});
  LoadResult result = queue_at(load, 10, 1);
  EXPECT_EQ(judge_saturation(load, result), Saturation::stable);
  for (size_t i = 0; i < 100; i += 10) result.requests[i].error = "HTTP 429";
  EXPECT_EQ(judge_saturation(load, result), Saturation::overloaded);
}

// Users of a closed loop beyond the server's slots wait for each other, however steady the queue is.
TEST(Saturation, ClosedLoopIsBackloggedIfItsUsersWait) {
  Load load = load_of(200, {.arrival = options::Arrival::closed, .concurrency = 10});
  for (size_t i = 0; i < 200; ++i) load.requests[i].at_s = static_cast<double>(i / 10);
  EXPECT_EQ(judge_saturation(load, queue_at(load, 10, 1)), Saturation::stable);
  for (size_t i = 0; i < 200; ++i) load.requests[i].at_s = static_cast<double>(i / 40) * 4;
  EXPECT_EQ(judge_saturation(load, queue_at(load, 10, 1)), Saturation::backlogged);
}

// Long answers hide a wait from a comparison with the service time, but not from the limit.
TEST(Saturation, WaitsAreComparedWithALimitInSeconds) {
  const Load load = load_of(40, {.arrival = options::Arrival::burst});
  LoadResult result = queue_at(load, 40, 900);
  EXPECT_EQ(judge_saturation(load, result), Saturation::stable);
  for (RequestResult& r : result.requests) r.scheduled_s += 360, r.first_token_s += 360, r.end_s += 360;
  EXPECT_EQ(judge_saturation(load, result), Saturation::backlogged);  // six minutes of 900 s
  EXPECT_EQ(judge_saturation(load, result, 400), Saturation::stable);
  for (RequestResult& r : result.requests) r.scheduled_s = formats::kUnknown;
  EXPECT_EQ(judge_saturation(load, result, 400), Saturation::backlogged);  // 450 s to the first token
}

TEST(Saturation, BurstIsBackloggedOnlyIfItWaits) {
  const Load load = load_of(40, {.arrival = options::Arrival::burst});
  EXPECT_EQ(judge_saturation(load, queue_at(load, 40, 1)), Saturation::stable);
  EXPECT_EQ(judge_saturation(load, queue_at(load, 8, 1)), Saturation::backlogged);
}

TEST(Saturation, UsersOfAClosedLoopWhoWaitForEachOtherAreBacklogged) {
  const Load load = load_of(40, {.arrival = options::Arrival::closed, .concurrency = 40});
  EXPECT_EQ(judge_saturation(load, queue_at(load, 40, 1)), Saturation::stable);
  EXPECT_EQ(judge_saturation(load, queue_at(load, 4, 1)), Saturation::backlogged);
}

formats::BenchPoint point(double rate, double ttft_p99, double e2e, const char* verdict = "stable") {
  formats::BenchPoint p;
  p.request_rate = rate, p.completed = 100, p.verdict = verdict;
  p.ttft.median = ttft_p99 / 2, p.ttft.percentiles[99] = ttft_p99;
  p.tpot.median = 20, p.e2el.median = e2e;
  return p;
}

TEST(Capacity, InterpolatesWhereTheFirstLimitIsReached) {
  const std::vector<formats::BenchPoint> points{point(8, 900, 4000), point(1, 100, 1000), point(4, 300, 1100),
                                                point(2, 100, 1000), point(16, 5000, 20000, "overloaded")};
  EXPECT_NEAR(find_capacity(points, {.ttft_ms = 600}).at_slo, 6, 1e-12);
  EXPECT_NEAR(find_capacity(points, {.ttft_ms = 600, .e2e_ms = 1100}).at_slo, 4, 1e-12);
  EXPECT_TRUE(std::isnan(find_capacity(points, {.tpot_ms = 19}).at_slo));
  EXPECT_EQ(find_capacity(points, {}).at_slo, 8) << "without an SLO, the last rate that is not overloaded";
  EXPECT_FALSE(find_capacity(points, {}).beyond_last);
  const std::vector<formats::BenchPoint> good(points.begin(), points.begin() + 4);
  EXPECT_TRUE(find_capacity(good, {.ttft_ms = 1000}).beyond_last);
  EXPECT_EQ(find_capacity(good, {.ttft_ms = 1000}).at_slo, 8);
  EXPECT_TRUE(std::isnan(find_capacity({}, {}).at_slo));
}

TEST(Capacity, IsTheHighestRateThatMeetsTheSloEvenIfLowerRatesMissIt) {
  const std::vector<formats::BenchPoint> points{point(1, 500, 1000), point(2, 100, 1000), point(4, 100, 1000),
                                                point(8, 100, 1000), point(16, 300, 1000)};
  const Capacity capacity = find_capacity(points, {.ttft_ms = 200});
  EXPECT_NEAR(capacity.at_slo, 12, 1e-12);
  EXPECT_EQ(capacity.failing_below, std::vector<double>{1});
  EXPECT_TRUE(find_capacity({points.begin() + 1, points.end()}, {.ttft_ms = 200}).failing_below.empty());
}

TEST(Capacity, IsTheHighestPassingRateOfAnyPattern) {
  Rng rng{23};
  for (int trial = 0; trial < 2000; ++trial) {
    const int n = 1 + static_cast<int>(rng.below(9));
    std::vector<formats::BenchPoint> points;
    double highest = 0, next = 0;
    std::vector<double> failing;
    for (int i = 0; i < n; ++i) {
      const double rate = std::pow(2, i);
      const bool passes = rng.below(2) == 0;
      points.push_back(point(rate, passes ? 100 : 300, 1000));
      if (passes) highest = rate, next = 0;
      if (!passes && next == 0) next = rate;
      if (!passes) failing.push_back(rate);
    }
    std::erase_if(failing, [&](double rate) { return rate > highest; });
    if (highest == 0) failing.clear();
    std::reverse(points.begin(), points.end());
    const Capacity capacity = find_capacity(points, {.ttft_ms = 200});
    ASSERT_EQ(std::isnan(capacity.at_slo), highest == 0);
    if (highest > 0) {
      ASSERT_NEAR(capacity.at_slo, next > 0 ? (highest + next) / 2 : highest, 1e-9);
    }
    ASSERT_EQ(capacity.beyond_last, highest > 0 && next == 0);
    ASSERT_EQ(capacity.failing_below, failing);
  }
}

// The load of a point whose arrivals end before the server is full shows what the prompts can produce, not the server.
TEST(Capacity, NeedsARateAtWhichTheServerWasInSteadyState) {
  std::vector<formats::BenchPoint> points;
  for (const double rate : {1, 2, 4, 64}) {
    points.push_back(point(rate, 100, 8000));
    points.back().request_throughput = 30 / (30 / rate + 8);  // 30 prompts, each of which takes 8 s
  }
  EXPECT_FALSE(is_too_short(points[0]));
  EXPECT_TRUE(is_too_short(points[3]));
  EXPECT_EQ(verdict_text(points[3]), "stable, too short");
  const Capacity capacity = find_capacity(points, {.ttft_ms = 200});
  EXPECT_EQ(capacity.at_slo, 1);
  EXPECT_FALSE(capacity.beyond_last);
  EXPECT_EQ(capacity.too_short, (std::vector<double>{2, 4, 64}));
  EXPECT_EQ(slo_text(capacity),
            "meets the SLO to 1 requests/s; at 2, 4 and 64 requests/s the arrivals ended before the server was full");
  const Capacity none = find_capacity({points.begin() + 1, points.end()}, {.ttft_ms = 200});
  EXPECT_TRUE(std::isnan(none.at_slo));
  EXPECT_EQ(slo_text(none),
            "too short to tell which rate meets the SLO: at 2, 4 and 64 requests/s the arrivals ended before the "
            "server was full");
  EXPECT_TRUE(std::isnan(none.knee));
  points[1].ttft.percentiles[99] = 300;
  EXPECT_EQ(find_capacity({points.begin(), points.begin() + 2}, {.ttft_ms = 200}).at_slo, 1)
      << "the latency of a short load is too low for an interpolation";
  points[3].verdict = "overloaded";
  EXPECT_FALSE(is_too_short(points[3]));
}

TEST(Capacity, TextNamesRatesThatMissTheSlo) {
  EXPECT_EQ(slo_text({.at_slo = 64, .failing_below = {1}}), "meets the SLO to 64 requests/s, but not at 1 requests/s");
  EXPECT_EQ(slo_text({.at_slo = 64, .beyond_last = true, .failing_below = {1, 2.5, 8}}),
            "meets the SLO to 64 requests/s, the highest that was offered, but not at 1, 2.5 and 8 requests/s");
}

TEST(Capacity, AveragesRepeatsAndIgnoresBursts) {
  std::vector<formats::BenchPoint> points{point(1, 100, 1000), point(4, 200, 1000), point(4, 400, 1000),
                                          point(8, 500, 1000)};
  points.push_back(point(std::numeric_limits<double>::infinity(), 1, 1));
  EXPECT_NEAR(find_capacity(points, {.ttft_ms = 400}).at_slo, 6, 1e-12);
}

TEST(Capacity, FindsTheKneeOfAHyperbolaAndNoneOfALine) {
  std::vector<formats::BenchPoint> points;
  for (const double rate : {1, 2, 3, 4, 5, 6, 7, 8, 9}) points.push_back(point(rate, 1, 1000 / (1 - rate / 10)));
  EXPECT_EQ(find_capacity(points, {}).knee, 7);  // 1/(1-x) has the slope of its chord at x = 0.7
  std::vector<formats::BenchPoint> line;
  for (const double rate : {1, 2, 3, 4}) line.push_back(point(rate, 1, 100 * rate));
  EXPECT_TRUE(std::isnan(find_capacity(line, {}).knee));
}

}  // namespace
}  // namespace mw::serve
