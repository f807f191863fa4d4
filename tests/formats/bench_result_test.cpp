// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_result.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"

namespace mw::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

BenchPoint full_point() {
  BenchPoint p;
  p.request_rate = 4;
  p.max_concurrency = 32;
  p.burstiness = 0.5;
  p.input_len = 4096;
  p.output_len = 3;
  p.num_prompts = 3;
  p.completed = 2;
  p.failed = 1;
  p.duration_s = 1.5;
  p.total_input_tokens = 8192;
  p.total_output_tokens = 6;
  p.request_throughput = 2 / 1.5;
  p.output_throughput = 4;
  p.total_token_throughput = 8198 / 1.5;
  p.request_goodput = 0.7;
  p.max_output_tokens_per_s = 5;
  p.max_concurrent_requests = 2;
  p.ttft = latency_stats({0.1, 0.2, 1.0 / 3});
  p.tpot = latency_stats({13.5, 14});
  p.itl = {.mean = 1, .percentiles = {{99.9, 7.25}, {99, 6}}};
  p.e2el = latency_stats({500, 600});
  p.intended_ttft = latency_stats({5, 6});
  p.intended_e2el = latency_stats({505, 606});
  p.prefix_hits = 0.25;
  p.verdict = "backlogged";
  p.note = "by hand";
  p.rest = {{"tokenizer_id", "t"}, {"rtfx", 0}};
  p.requests = {{.intended_s = 0.1,
                 .sent_s = 0.123456789,
                 .first_token_s = 0.2,
                 .end_s = 0.25,
                 .scheduled_s = 0.15,
                 .prompt_tokens = 4096,
                 .cached_tokens = 16,
                 .output_tokens = 3,
                 .preemptions = 1,
                 .gaps_ms = {25.5f, 24.5f}},
                {.intended_s = 0.2, .sent_s = 0.2, .prompt_tokens = 4096, .error = "503 Service Unavailable"}};
  p.timeline = {{.time_s = 0.5, .running = 2, .waiting = 1, .kv_used = 0.75, .output_tokens_s = 4}};
  p.steps = {
      {.work = {.tokens = 17, .requests = 2, .sampled = 1, .read = 4096, .pairs = 32.5}, .seconds = 0.001, .count = 3},
      {.work = {.tokens = 1, .requests = 1}, .seconds = 0.0005, .progress = 0.25}};
  return p;
}

Problem refused(const Json& json) {
  try {
    bench_set(json);
  } catch (const Error& error) {
    return error.problem();
  }
  ADD_FAILURE() << "accepted " << json;
  return {};
}

TEST(BenchResult, PointRoundTrips) {
  const BenchPoint p = full_point();
  const Json json = to_json(p, Detail::requests);
  const BenchPoint back = bench_point(parse_json(json.dump(), "test"));
  EXPECT_EQ(to_json(back, Detail::requests), json);
  EXPECT_EQ(back.ttft.mean, p.ttft.mean);
  EXPECT_EQ(back.itl.percentile(99.9), 7.25);
  EXPECT_TRUE(std::isnan(back.itl.median));
  EXPECT_EQ(back.intended_e2el.percentile(99), p.intended_e2el.percentile(99));
  EXPECT_EQ(back.rest, p.rest);
  ASSERT_EQ(back.requests.size(), 2u);
  EXPECT_NEAR(back.requests[0].end_s, 0.25, 1e-9);
  EXPECT_NEAR(back.requests[0].intended_s, 0.1, 1e-9);
  EXPECT_EQ(back.requests[0].gaps_ms, p.requests[0].gaps_ms);
  EXPECT_FALSE(back.requests[1].completed());
  EXPECT_TRUE(std::isnan(back.requests[1].first_token_s));
  ASSERT_EQ(back.timeline.size(), 1u);
  EXPECT_EQ(back.timeline[0].kv_used, 0.75);
  ASSERT_EQ(back.steps.size(), 2u);
  EXPECT_EQ(back.steps[0].work.pairs, 32.5);
  EXPECT_EQ(back.steps[0].count, 3);
  EXPECT_TRUE(std::isnan(back.steps[0].progress));
  EXPECT_EQ(back.steps[1].seconds, 0.0005);
  EXPECT_EQ(back.steps[1].progress, 0.25);
  EXPECT_FALSE(to_json(p, Detail::summary).contains("steps"));
}

TEST(BenchResult, RejectsInvalidSteps) {
  for (const char* row :
       {"[1,1,1,0,0,0.1]", "[1,1,1,0,0,0.1,0]", "[1,1,1,0,0,0,1]", "[1,1,1,0,-1,0.1,1]", "[1,1,1,0,0,\"a\",1]", "{}",
        "[1,1,1,0,0,0.1,1,1.5]", "[1,1,1,0,0,0.1,1,-1]", "[1,1,1,0,0,0.1,1,0,0]", "[1,1,1,0,0,1e999,1]"}) {
    Json json = to_json(full_point(), Detail::requests);
    try {
      json["steps"] = Json::array({Json::parse(row)});
      bench_point(json);
      ADD_FAILURE() << "accepted " << row;
    } catch (const Error& error) {
      EXPECT_EQ(error.problem().place, "steps") << row;
    } catch (const Json::exception&) {  // what is no number is no JSON either
    }
  }
}

TEST(BenchResult, UsesFieldNamesOfVllm) {
  Json json = to_json(full_point(), Detail::requests);
  for (const char* key : {"request_rate",
                          "burstiness",
                          "max_concurrency",
                          "num_prompts",
                          "completed",
                          "failed",
                          "duration",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "p99.9_itl_ms",
                          "input_lens",
                          "output_lens",
                          "ttfts",
                          "itls",
                          "latencies",
                          "start_times",
                          "queue_times",
                          "errors"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_FALSE(json.contains("median_itl_ms"));  // not known: left out
  BenchPoint burst;
  burst.request_rate = std::numeric_limits<double>::infinity();
  json = to_json(burst, Detail::summary);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_TRUE(json["max_concurrency"].is_null());
  EXPECT_TRUE(std::isinf(bench_point(json).request_rate));
  EXPECT_FALSE(json.contains("ttfts"));
  EXPECT_TRUE(std::isnan(bench_point(Json::object()).request_rate));
}

TEST(BenchResult, SetRoundTripsWithDefinitions) {
  BenchSet set{.name = "v6e-8",
               .provenance = ResultProvenance::predicted,
               .tool = "meshwright",
               .source = "run-3",
               .model = "gemma4-31b",
               .target = "v6e-8",
               .chips = 8,
               .usd_per_hour = 21.52,
               .conditions = {{"kv_dtype", "bf16"}, {"prefix_cache", "on"}},
               .definitions = {Definitions::Tpot::with_first, Definitions::Start::intended, Definitions::Peak::unclear},
               .points = {full_point()},
               .notes = {"rates are not published"}};
  const BenchSet back = bench_set(to_json(set, Detail::requests));
  EXPECT_EQ(to_json(back, Detail::requests), to_json(set, Detail::requests));
  EXPECT_EQ(back.definitions, set.definitions);
  EXPECT_EQ(back.conditions, set.conditions);
  EXPECT_EQ(back.provenance, ResultProvenance::predicted);
  EXPECT_EQ(back.points.at(0).requests.size(), 2u);
  EXPECT_TRUE(bench_set(to_json(set, Detail::summary)).points.at(0).requests.empty());
}

TEST(BenchResult, ReportsPlaceOfInvalidFields) {
  const Json good = to_json(BenchSet{.name = "a", .points = {full_point(), full_point()}}, Detail::requests);
  const auto with = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    return refused(json);
  };
  EXPECT_EQ(with("/points/1/duration", "fast").place, "points[1].duration");
  EXPECT_EQ(with("/points/1/duration", -1).found, "-1");
  EXPECT_EQ(with("/points/0/median_ttft_ms", Json::array()).place, "points[0].median_ttft_ms");
  EXPECT_EQ(with("/points/0/completed", 1.5).place, "points[0].completed");
  EXPECT_EQ(with("/points/0/completed", 1e300).place, "points[0].completed");
  EXPECT_EQ(with("/points/0/request_rate", 0).place, "points[0].request_rate");
  EXPECT_THAT(with("/points/0/request_rate", "fast").expected, HasSubstr("\"inf\""));
  EXPECT_THAT(with("/points/0/verdict", "good").expected, HasSubstr("overloaded"));
  EXPECT_EQ(with("/points/0/ttfts", Json::array({1})).expected, "2, as many as output_lens");
  EXPECT_EQ(with("/points/0/itls/0/1", "x").place, "points[0].itls[0]");
  EXPECT_EQ(with("/points/0", 7).place, "points[0]");
  EXPECT_EQ(with("/points", 7).place, "points");
  EXPECT_EQ(with("/definitions/tpot", "mine").place, "definitions.tpot");
  EXPECT_EQ(with("/provenance", "guessed").place, "provenance");
  EXPECT_EQ(with("/conditions/tp", 8).place, "conditions.tp");
  EXPECT_THAT(with("/modle", "x").expected, HasSubstr("model"));
}

TEST(BenchResult, LoadStartsWithFirstRequestForUnknownClockOrigin) {
  const BenchPoint p = bench_point(Json::parse(R"({"input_lens": [8, 8], "output_lens": [2, 0], "ttfts": [0.5, 0.0],
    "itls": [[0.25], []], "start_times": [1000.5, 1000.75], "errors": ["", "refused"], "request_goodput:": 2})"));
  ASSERT_EQ(p.requests.size(), 2u);
  EXPECT_DOUBLE_EQ(p.requests[0].sent_s, 0);
  EXPECT_DOUBLE_EQ(p.requests[0].end_s, 0.75);  // older files have no latencies
  EXPECT_DOUBLE_EQ(p.requests[1].sent_s, 0.25);
  EXPECT_EQ(p.requests[1].error, "refused");
  EXPECT_DOUBLE_EQ(p.request_goodput, 2);
}

TEST(BenchResult, PercentilesMatchNumpy) {
  // numpy.percentile([4, 1, 3, 2], [0, 25, 50, 90, 99, 100])
  const std::vector<double> v{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(percentile_of(v, 0), 1);
  EXPECT_DOUBLE_EQ(percentile_of(v, 25), 1.75);
  EXPECT_DOUBLE_EQ(percentile_of(v, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile_of(v, 90), 3.7);
  EXPECT_DOUBLE_EQ(percentile_of(v, 99), 3.97);
  EXPECT_DOUBLE_EQ(percentile_of(v, 100), 4);
  EXPECT_TRUE(std::isnan(percentile_of({}, 50)));
  EXPECT_DOUBLE_EQ(percentile_of({kUnknown, 7}, 99), 7);
  const LatencyStats s = latency_stats(v);
  EXPECT_DOUBLE_EQ(s.mean, 2.5);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt(1.25));  // population
  EXPECT_DOUBLE_EQ(s.percentile(50), 2.5);
  EXPECT_TRUE(std::isnan(s.percentile(10)));
  EXPECT_TRUE(s.known());
  EXPECT_FALSE(latency_stats({}).known());
}

}  // namespace
}  // namespace mw::formats
