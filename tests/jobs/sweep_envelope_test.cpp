// SPDX-License-Identifier: GPL-3.0-or-later
// The envelope of meshes: a made-up one whose crossovers are known, and simulated ones.
#include "core/jobs/sweep_envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/shipped.h"

namespace mw::jobs {
namespace {

using test::context;
using testing::HasSubstr;

// Latency of mesh m at a rate and repeat, ms.
template <class Latency>
EnvelopeRuns made_up(const std::vector<double>& rates, int meshes, Latency latency) {
  EnvelopeRuns runs{.target = "v6e-8",
                    .meshes = {},
                    .repeats = 5,
                    .requests = 400,
                    .input_lens = {512},
                    .rates = rates,
                    .points = {}};
  for (int m = 0; m < meshes; ++m) {
    runs.meshes.push_back({{{{"tp", 1 << m}}}, 1, "v6e-8", "tp " + std::to_string(1 << m), "", {}});
    auto& points = runs.points.emplace_back();
    for (const double rate : rates)
      for (int r = 0; r < runs.repeats; ++r) {
        formats::BenchPoint p;
        p.request_rate = rate;
        p.ttft.median = latency(m, rate, r);
        p.ttft.percentiles[99] = 3 * p.ttft.median;
        points.push_back(std::move(p));
      }
  }
  return runs;
}

TEST(Envelope, FindsTheCrossoverOfTwoLinesAndItsInterval) {
  // In log2 of the rate: 10 + x and 13 - x cross at x = 1.5. Both shake together from repeat to repeat, and the
  // difference by +-0.2.
  const auto runs = made_up({1, 2, 4, 8}, 2, [](int m, double rate, int r) {
    const double x = std::log2(rate), shake = 5.0 * r, own = m == 0 ? 0.1 * (r % 3 - 1) : 0;
    return (m == 0 ? 10 + x : 13 - x) + shake + own;
  });
  const auto lines = envelope(runs, EnvelopeMetric::median_ttft);
  ASSERT_EQ(lines.size(), 1u);
  const EnvelopeLine& line = lines.front();
  ASSERT_EQ(line.points.size(), 4u);
  EXPECT_EQ(line.points[0].best, 0u);
  EXPECT_EQ(line.points[1].best, 0u);
  EXPECT_EQ(line.points[2].best, 1u);
  EXPECT_EQ(line.points[3].best, 1u);
  // The intervals of the means overlap widely, but the paired differences tell them apart.
  EXPECT_LT(line.points[0].meshes[1].low, line.points[0].meshes[0].high);
  for (const EnvelopePoint& point : line.points) EXPECT_TRUE(point.is_clear) << point.rate;
  ASSERT_EQ(line.crossovers.size(), 1u);
  const Crossover& c = line.crossovers.front();
  EXPECT_EQ(c.from, 0u);
  EXPECT_EQ(c.to, 1u);
  // The mean of own is that of r % 3 - 1 over 0 to 4: -0.2 * 0.1. The difference is 2 x - 3 - 0.02.
  EXPECT_NEAR(std::log2(c.rate), 1.51, 1e-9);
  EXPECT_LT(c.low, c.rate);
  EXPECT_GT(c.high, c.rate);
  EXPECT_GT(c.low, 2);
  EXPECT_LT(c.high, 4);
  // p99 is three times as large everywhere: the same crossover.
  EXPECT_NEAR(envelope(runs, EnvelopeMetric::p99_ttft).front().crossovers.front().rate, c.rate, 1e-9);
}

TEST(Envelope, AnUnclearDifferenceWidensTheInterval) {
  const auto runs = made_up({1, 2, 4, 8, 16}, 2, [](int m, double rate, int r) {
    const double x = std::log2(rate), own = m == 0 ? 3.0 * (r - 2) : 0;
    return m == 0 ? 10 + x + own : 14 - x;
  });
  const auto line = envelope(runs, EnvelopeMetric::median_ttft).front();
  EXPECT_FALSE(line.points[2].is_clear);
  ASSERT_EQ(line.crossovers.size(), 1u);
  EXPECT_DOUBLE_EQ(line.crossovers.front().low, 1);    // the first rate: nowhere surely better
  EXPECT_DOUBLE_EQ(line.crossovers.front().high, 16);  // the last one
}

TEST(Envelope, HasNoCrossoverBeyondFiniteRatesAndSkipsMeshesThatDoNotFit) {
  auto runs = made_up({1, 2, INFINITY}, 3, [](int m, double rate, int) {
    return m == 0 ? 1.0 : std::isinf(rate) && m == 1 ? 0.5 : 2.0;
  });
  runs.meshes[2].refusal = "does not fit";
  runs.points[2].clear();
  const auto line = envelope(runs, EnvelopeMetric::median_ttft).front();
  EXPECT_EQ(line.points[2].best, 1u);
  EXPECT_TRUE(line.crossovers.empty());
  EXPECT_TRUE(std::isnan(line.points[0].meshes[2].mean));
  const Json json = envelope_json(runs, EnvelopeMetric::median_ttft);
  EXPECT_EQ(json["meshes"].size(), 3u);
  EXPECT_FALSE(json["meshes"][2]["simulated"].get<bool>());
  EXPECT_EQ(json["lengths"][0]["points"][2]["request_rate"], "inf");
  EXPECT_EQ(json["lengths"][0]["points"][0]["meshes"].size(), 2u);
  EXPECT_THAT(envelope_text(runs, EnvelopeMetric::median_ttft), HasSubstr("tp 4 is not simulated: does not fit"));
}

experiment::Experiment small_serve() {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/paper-serve-v6e-8.json");
  e.set_value("sweep.request_rates", Json::array({4, 1, "inf", 4}));
  e.set_value("sweep.input_lens", Json::array({1024}));
  e.set_value("sweep.output_len", 32);
  e.set_value("sweep.num_prompts", 20);
  return e;
}

TEST(Envelope, SimulatesMeshesAndReplicasThatFit) {
  const experiment::Experiment e = small_serve();
  const EnvelopePlan plan = envelope_plan(e, context());
  EXPECT_EQ(plan.repeats, 5);
  ASSERT_EQ(plan.meshes.size(), 3u);  // v6e has no slice of two chips, and one chip does not hold 31B
  EXPECT_EQ(plan.meshes[1].name, "2 replicas, tp 4");
  EXPECT_EQ(plan.meshes[1].target, "v6e-4");
  EXPECT_EQ(plan.meshes[1].refusal, "");
  EXPECT_THAT(plan.meshes[2].refusal, HasSubstr("does not fit"));
  EXPECT_THAT(envelope_note(plan), HasSubstr("368 requests are needed"));
  const EnvelopeRuns runs = simulate_envelope(e, context(), {}, {});
  EXPECT_EQ(runs.rates, (std::vector<double>{1, 4, INFINITY}));
}

TEST(Envelope, StatesTheFewestRequestsOfAnyLength) {
  experiment::Experiment e = small_serve();
  e.set_value("sweep.num_prompts_at", Json::array({"1024:7"}));
  EXPECT_EQ(envelope_plan(e, context()).requests, 7);
  e.set_value("sweep.num_prompts_at", Json::array({"2048:7"}));  // no load of this length
  EXPECT_EQ(envelope_plan(e, context()).requests, 20);
}

// Steps without sums between eight chips serve a burst sooner; the first token of one request is later.
TEST(Envelope, FindsThatReplicasServeMoreAndOneServerAnswersSooner) {
  experiment::Experiment e = small_serve();
  e.set_value("model.id", "gemma3-4b");
  e.set_value("sweep.request_rates", Json::array({1, 400}));
  e.set_value("sweep.num_prompts", 200);
  const EnvelopeRuns runs = simulate_envelope(e, context(), {}, {});
  const auto lines = envelope(runs, EnvelopeMetric::median_e2el);
  ASSERT_EQ(lines.size(), 1u);
  const EnvelopePoint &low = lines[0].points.front(), &high = lines[0].points.back();
  EXPECT_GT(runs.meshes[high.best].replicas, runs.meshes[low.best].replicas);
  EXPECT_EQ(lines[0].crossovers.size(), 1u);
}

TEST(Envelope, StopsAndRejectsWhatHasNoEnvelope) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(simulate_envelope(small_serve(), context(), {}, stop.get_token()), Error);
  const auto place_of = [](const std::string& key, const Json& value) -> std::string {
    experiment::Experiment e = small_serve();
    e.set_value(key, value);
    try {
      envelope_plan(e, context());
    } catch (const Error& error) {
      return error.problem().place;
    }
    return "";
  };
  EXPECT_EQ(place_of("sweep.arrival", "burst"), "sweep.arrival");
  EXPECT_EQ(place_of("target.id", "cpu"), "target.id");
  EXPECT_EQ(place_of("model.id", "llama3.1-405b"), "target.id");  // fits on no mesh
}

}  // namespace
}  // namespace mw::jobs
