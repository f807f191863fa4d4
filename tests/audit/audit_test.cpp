// SPDX-License-Identifier: Apache-2.0
#include "core/audit/audit.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/hardware/catalogue.h"
#include "core/model/catalogue.h"

namespace mw::audit {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using formats::Definitions;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

AuditReference against(const std::string& model, const std::string& target) {
  static const hardware::Catalogue catalogue =
      hardware::Catalogue::load(std::filesystem::path(MW_RESOURCES) / "hardware");
  return {.model = model::catalogue_config(model), .target = catalogue.target(target)};
}

std::vector<AuditFinding> of(const std::vector<AuditFinding>& all, const std::string& rule, size_t point) {
  std::vector<AuditFinding> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const AuditFinding& f) { return f.rule == rule && f.point == point; });
  return out;
}

bool has(const std::vector<AuditFinding>& all, const std::string& rule, size_t point = 0) {
  return !of(all, rule, point).empty();
}

BenchPoint at(double rate, int in, int out) {
  BenchPoint p;
  p.request_rate = rate;
  p.input_len = in;
  p.output_len = out;
  return p;
}

// arXiv 2605.25645, serving table: 30 prompts per run.
struct Cell {
  int in, out;
  double rate, throughput, ttft, tpot;
};
BenchSet paper(const std::string& target, std::initializer_list<Cell> cells) {
  BenchSet set{.name = target, .tool = "vllm bench serve", .model = "gemma4-31b", .target = target};
  set.definitions.peak = Definitions::Peak::unclear;
  for (const Cell& c : cells) {
    BenchPoint p = at(c.rate, c.in, c.out);
    p.num_prompts = 30;
    p.output_throughput = c.throughput;
    p.ttft.median = c.ttft;
    p.tpot.median = c.tpot;
    set.points.push_back(p);
  }
  return set;
}
constexpr double kNo = formats::kUnknown;
const BenchSet& paper_tpu() {
  static const BenchSet set = paper("v6e-8", {{512, 256, kInf, 1403, 45, kNo},
                                              {1024, 512, 4, kNo, 49, kNo},
                                              {4096, 512, 4, kNo, 61, kNo},
                                              {8192, 512, 4, kNo, 1013, kNo},
                                              {15360, 512, 4, kNo, 62, kNo},
                                              {4096, 512, kNo, 1206, kNo, 23.9}});
  return set;
}
const BenchSet& paper_gpu() {
  static const BenchSet set = paper("2xh100", {{512, 256, kInf, 1490, 51, kNo},
                                               {1024, 512, 4, kNo, 58, kNo},
                                               {4096, 512, 4, kNo, 1443, kNo},
                                               {8192, 512, 4, kNo, 7202, kNo},
                                               {15360, 512, 4, kNo, 99, kNo},
                                               {4096, 512, kNo, 728, kNo, 31.2}});
  return set;
}

TEST(AuditPaper, LongPromptsOfBothPlatformsAreBelowTheFloor) {
  const auto tpu = audit(paper_tpu(), against("gemma4-31b", "v6e-8"));
  const auto gpu = audit(paper_gpu(), against("gemma4-31b", "2xh100"));
  const auto t = of(tpu, "FLOOR-PREFILL", 4), g = of(gpu, "FLOOR-PREFILL", 4);
  ASSERT_EQ(t.size(), 1u);
  ASSERT_EQ(g.size(), 1u);
  EXPECT_EQ(t[0].verdict, Verdict::impossible);
  EXPECT_EQ(g[0].verdict, Verdict::impossible);
  EXPECT_NEAR(t[0].floor, 130,
              10);  // 2 x 30.7e9 x 15,360 / 7.34e15 is 128 ms; the floor adds attention and excludes the embedding
  EXPECT_NEAR(g[0].floor, 480, 30);
  EXPECT_EQ(t[0].value, 62);
  EXPECT_EQ(g[0].value, 99);
  EXPECT_EQ(t[0].metric, "median_ttft_ms");
  EXPECT_THAT(t[0].text, HasSubstr("15,360 tokens"));
  EXPECT_THAT(t[0].formula, HasSubstr("8 x 918 TFLOP/s"));
  for (const auto* all : {&tpu, &gpu})
    for (const AuditFinding& f : *all) EXPECT_TRUE(f.verdict != Verdict::impossible || f.point == 4) << f.text;
}

TEST(AuditPaper, HalfOfThePeakIsSuspiciousButQueueingIsNot) {
  const auto tpu = audit(paper_tpu(), against("gemma4-31b", "v6e-8"));
  const auto gpu = audit(paper_gpu(), against("gemma4-31b", "2xh100"));
  ASSERT_TRUE(has(tpu, "FLOOR-PREFILL", 2));  // 4,096: 61 ms, floor 34
  EXPECT_EQ(of(tpu, "FLOOR-PREFILL", 2)[0].verdict, Verdict::suspicious);
  EXPECT_NEAR(of(tpu, "FLOOR-PREFILL", 2)[0].floor, 34.2, 1);
  ASSERT_TRUE(has(gpu, "FLOOR-PREFILL", 1));  // 1,024: 58 ms, floor 31.8
  EXPECT_NEAR(of(gpu, "FLOOR-PREFILL", 1)[0].floor, 31.8, 1);
  for (const size_t i : {0, 1, 3}) EXPECT_FALSE(has(tpu, "FLOOR-PREFILL", i)) << i;
  for (const size_t i : {0, 2, 3}) EXPECT_FALSE(has(gpu, "FLOOR-PREFILL", i)) << i;
  EXPECT_TRUE(has(tpu, "PREFIX-CACHE", 2));  // 12 ms more for 3,072 tokens
  EXPECT_FALSE(has(gpu, "PREFIX-CACHE", 2));
  EXPECT_TRUE(has(tpu, "MONOTONY", 4));
  EXPECT_TRUE(has(gpu, "MONOTONY", 4));
  EXPECT_FALSE(has(gpu, "MONOTONY", 3));
}

TEST(AuditPaper, SmallBurstsMeasureTheClient) {
  for (const BenchSet* set : {&paper_tpu(), &paper_gpu()}) {
    const auto all = audit(*set);
    ASSERT_TRUE(has(all, "LITTLE", 0));
    EXPECT_THAT(of(all, "LITTLE", 0)[0].text, HasSubstr("30 prompts"));
    EXPECT_TRUE(has(all, "TOO-FEW", 0));
  }
  ASSERT_TRUE(has(audit(paper_tpu()), "LITTLE", 5));  // 1,206 x 23.9 ms = 28.8 of 30
  EXPECT_THAT(of(audit(paper_tpu()), "LITTLE", 5)[0].text, HasSubstr("28.8"));
  EXPECT_FALSE(has(audit(paper_gpu()), "LITTLE", 5));  // 22.7 of 30
  // Prompts, tokens/s and TPOT of the raw results; the third run was not limited by the client.
  BenchSet raw{.name = "burst", .points = {}};
  struct Run {
    long prompts;
    double throughput, tpot, rate;
  };
  for (const Run r : {Run{64, 2245, 26, kInf},
                      {128, 3085, 39, kInf},
                      {256, 2339, 40, kInf},
                      {64, 3253, 18.71, 10000},
                      {64, 3158, 18.42, 10000}}) {
    BenchPoint p = at(r.rate, 128, 256);
    p.num_prompts = r.prompts;
    p.output_throughput = r.throughput;
    p.tpot.median = r.tpot;
    raw.points.push_back(p);
  }
  const auto all = audit(raw);
  for (const size_t i : {0, 1, 3, 4}) EXPECT_TRUE(has(all, "LITTLE", i)) << i;
  EXPECT_FALSE(has(all, "LITTLE", 2));
  EXPECT_NEAR(of(all, "LITTLE", 3)[0].floor, 3421, 1);
  EXPECT_THAT(of(all, "LITTLE", 3)[0].text, HasSubstr("95 %"));
  EXPECT_THAT(of(all, "LITTLE", 4)[0].text, HasSubstr("91 %"));
}

TEST(Audit, CachedPromptTokensHaveNoPrefillFloor) {
  BenchSet set = paper_tpu();
  set.points[4].prefix_hits = 0.95;
  const auto a = against("gemma4-31b", "v6e-8");
  EXPECT_FALSE(has(audit(set, a), "FLOOR-PREFILL", 4));
  set.points[4].prefix_hits = 0.1;
  EXPECT_TRUE(has(audit(set, a), "FLOOR-PREFILL", 4));
  set.points[4].prefix_hits = 0;
  EXPECT_THAT(of(audit(set, a), "FLOOR-PREFILL", 4).at(0).text, HasSubstr("no prefix cache"));
  EXPECT_FALSE(has(audit(set, a), "PREFIX-CACHE", 4));
}

TEST(Audit, CountsActiveExpertsOnly) {
  BenchSet set{.name = "moe", .points = {at(1, 8192, 128)}};
  const auto floor = [&](const std::string& model) {
    set.points[0].ttft.median = 1;
    return of(audit(set, against(model, "v6e-8")), "FLOOR-PREFILL", 0).at(0).floor;
  };
  const double moe = floor("gemma4-26b-a4b"), dense = floor("gemma4-31b"), small = floor("gemma4-e4b");
  EXPECT_LT(moe, dense / 5);  // 3.8e9 active of 26e9
  EXPECT_GT(moe, 2 * 3e9 * 8192 / (8 * 918e12) * 1e3);
  EXPECT_GT(moe, small / 3);
}

// 64 requests at once choose nearly all experts: 50 GB of weights, not the 7.6 GB of one request.
TEST(Audit, DecodeFloorReadsTheExpertsOfTheBatch) {
  BenchSet set{.name = "moe", .points = {at(1, 128, 512)}};
  const auto a = against("gemma4-26b-a4b", "1xh100");
  set.points[0].tpot.median = 6;  // 7.6 GB / 3.35 TB/s = 2.3 ms
  EXPECT_FALSE(has(audit(set, a), "FLOOR-DECODE"));
  set.points[0].output_throughput = 64 / 6e-3;
  ASSERT_TRUE(has(audit(set, a), "FLOOR-DECODE"));
  EXPECT_NEAR(of(audit(set, a), "FLOOR-DECODE", 0)[0].floor, 50e9 / 3.35e12 * 1e3, 0.7);
}

TEST(Audit, DecodeFloorIncludesWeightsAndCacheOfTheBatch) {
  BenchSet set{.name = "decode", .points = {at(1, 1024, 512)}};
  const auto a = against("gemma4-31b", "v6e-8");
  set.points[0].tpot.median = 4;  // 61.4 GB / 13.1 TB/s = 4.7 ms
  ASSERT_TRUE(has(audit(set, a), "FLOOR-DECODE"));
  EXPECT_EQ(of(audit(set, a), "FLOOR-DECODE", 0)[0].verdict, Verdict::impossible);
  EXPECT_NEAR(of(audit(set, a), "FLOOR-DECODE", 0)[0].floor, 4.75, 0.1);
  set.points[0].tpot.median = 6;
  EXPECT_FALSE(has(audit(set, a), "FLOOR-DECODE"));
  set.points[0].output_throughput = 30000;  // 180 at once
  ASSERT_TRUE(has(audit(set, a), "FLOOR-DECODE"));
  EXPECT_EQ(of(audit(set, a), "FLOOR-DECODE", 0)[0].verdict, Verdict::suspicious);
  set.points[0].rest["spec_decode_acceptance_rate"] = 0.7;  // several tokens per step
  EXPECT_FALSE(has(audit(set, a), "FLOOR-DECODE"));
  // Half the bytes halve the floor.
  AuditReference fp8 = a;
  fp8.weight_bytes = 1;
  set.points[0] = at(1, 1024, 512);
  set.points[0].tpot.median = 3;
  EXPECT_FALSE(has(audit(set, fp8), "FLOOR-DECODE"));
  EXPECT_TRUE(has(audit(set, a), "FLOOR-DECODE"));
}

TEST(Audit, ChecksLinksContextsAndRates) {
  const auto a = against("gemma4-31b", "v6e-8");
  BenchSet set{.name = "x", .conditions = {{"tp", "8"}, {"max_model_len", "4096"}}, .points = {at(4, 15360, 512)}};
  set.points[0].ttft.median = 62;
  set.points[0].completed = 30;
  const auto link = of(audit(set, a), "LINK", 0);
  ASSERT_EQ(link.size(), 1u);  // 60 layers x 2 x 165 MB x 7/4 over four links
  EXPECT_NEAR(link[0].floor, 60 * 2 * 15360.0 * 5376 * 2 * 1.75 / 360e9 * 1e3, 0.5);
  EXPECT_TRUE(has(audit(set, a), "CONTEXT"));
  set.points[0].total_token_throughput = 463345;
  EXPECT_TRUE(has(audit(set, a), "FLOOR-PREFILL"));
  set.conditions.clear();
  set.points[0].ttft.median = 5000;
  const auto rate = of(audit(set, a), "FLOOR-PREFILL", 0);
  ASSERT_EQ(rate.size(), 1u);
  EXPECT_EQ(rate[0].metric, "total_token_throughput");
  EXPECT_EQ(rate[0].verdict, Verdict::impossible);
  EXPECT_NEAR(rate[0].floor, 8 * 918e12 / (2 * 29.3e9), 1500);
}

TEST(Audit, FindsContradictoryTotalsUnitsAndPercentiles) {
  BenchSet set{.name = "u", .points = {at(4, 100, 10)}};
  BenchPoint& p = set.points[0];
  p.num_prompts = p.completed = 1000;
  p.duration_s = 250;
  p.total_input_tokens = 100000;
  p.total_output_tokens = 10000;
  p.output_throughput = 40;
  p.request_throughput = 4;
  p.total_token_throughput = 440;
  p.ttft = {.mean = 50, .median = 48, .percentiles = {{99, 90}}};
  p.tpot = {.mean = 10, .median = 9};
  p.e2el = {.mean = 140, .median = 130};
  EXPECT_TRUE(audit(set).empty()) << audit(set)[0].text;
  const auto with = [&](auto change) {
    BenchSet other = set;
    change(other.points[0]);
    return audit(other);
  };
  const auto off = with([](BenchPoint& q) { q.duration_s = 250000; });
  ASSERT_TRUE(has(off, "UNITS"));
  EXPECT_THAT(of(off, "UNITS", 0)[0].text, HasSubstr("thousand"));
  EXPECT_EQ(of(off, "UNITS", 0)[0].verdict, Verdict::impossible);
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.output_throughput = 42; }), "UNITS"));
  EXPECT_FALSE(has(with([](BenchPoint& q) { q.output_throughput = 40.4; }), "UNITS"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.ttft.percentiles[99] = 40; }), "UNITS"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.completed = 1001; }), "UNITS"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.ttft.mean = 150; }), "UNITS"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.e2el = {.mean = 5000}; }), "UNITS"));
  const auto seconds = with([](BenchPoint& q) {
    q.ttft = {.median = 0.05};
    q.tpot = {.median = 0.01};
    q.e2el = {};
  });
  ASSERT_TRUE(has(seconds, "UNITS"));
  EXPECT_THAT(of(seconds, "UNITS", 0)[0].text, HasSubstr("look like seconds"));
  BenchSet ours = set;  // always in ms: small models are that fast
  ours.tool = "meshwright 0.1.0, engine";
  ours.points[0].ttft = {.median = 0.05}, ours.points[0].tpot = {.median = 0.01}, ours.points[0].e2el = {};
  EXPECT_FALSE(has(audit(ours), "UNITS"));
  EXPECT_TRUE(has(with([](BenchPoint& q) {
                    q.total_output_tokens = 5000, q.output_throughput = 20, q.total_token_throughput = 420;
                  }),
                  "LENGTHS"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.request_rate = 2; }), "UNITS"));
  // The throughput of the best second is not the mean.
  set.definitions.peak = Definitions::Peak::best_second;
  EXPECT_FALSE(has(with([](BenchPoint& q) { q.output_throughput = 55; }), "UNITS"));
}

TEST(Audit, FindsTooFewRequestsFailuresLoopsAndSaturation) {
  BenchSet set{.name = "l", .points = {at(4, 100, 10)}};
  BenchPoint& p = set.points[0];
  p.num_prompts = p.completed = 600;
  p.duration_s = 151;
  p.ttft = {.median = 50, .percentiles = {{99, 90}}};
  p.e2el = {.median = 140};
  EXPECT_TRUE(audit(set).empty()) << audit(set)[0].text;
  const auto with = [&](auto change) {
    BenchSet other = set;
    change(other.points[0]);
    return audit(other);
  };
  const auto few = with([](BenchPoint& q) { q.num_prompts = q.completed = 30, q.duration_s = 7.6; });
  ASSERT_EQ(of(few, "TOO-FEW", 0).size(), 2u);  // p99 and median
  EXPECT_EQ(of(few, "TOO-FEW", 0)[0].metric, "completed");
  EXPECT_EQ(unit_of(of(few, "TOO-FEW", 0)[0].metric), "requests");
  EXPECT_EQ(of(few, "TOO-FEW", 0)[0].value, 30);
  EXPECT_THAT(of(few, "TOO-FEW", 0)[0].text, HasSubstr("p99_ttft_ms"));
  EXPECT_EQ(of(few, "TOO-FEW", 0)[0].floor, 500);
  EXPECT_THAT(of(few, "TOO-FEW", 0)[1].text, HasSubstr("ranks 9 and 22"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.failed = 3, q.completed = 597; }), "FAILED"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.max_concurrency = 8, q.max_concurrent_requests = 8; }), "LOOP"));
  EXPECT_FALSE(has(with([](BenchPoint& q) { q.max_concurrency = 64, q.max_concurrent_requests = 8; }), "LOOP"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.intended_ttft = {.median = 1450}; }), "LOOP"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.duration_s = 300; }), "SATURATED"));
  EXPECT_TRUE(has(with([](BenchPoint& q) { q.verdict = "backlogged"; }), "SATURATED"));
  EXPECT_FALSE(has(with([](BenchPoint& q) { q.verdict = "stable", q.duration_s = 300; }), "SATURATED"));
  // A closed loop is always at its limit, but needs several requests per user.
  const auto closed = with([](BenchPoint& q) {
    q.request_rate = formats::kUnknown;
    q.max_concurrency = 128;
    q.output_throughput = 12800;
    q.tpot = {.median = 10};
    q.num_prompts = q.completed = 600;
  });
  EXPECT_FALSE(has(closed, "LITTLE"));
  EXPECT_TRUE(has(closed, "TOO-FEW"));
}

TEST(Audit, FindsThroughputThatRisesBeyondSaturation) {
  BenchSet set{.name = "m", .points = {at(8, 100, 10), at(16, 100, 10)}};
  set.points[0].verdict = "overloaded";
  set.points[0].output_throughput = 50;
  set.points[1].output_throughput = 55;
  EXPECT_FALSE(has(audit(set), "MONOTONY", 1));
  set.points[1].output_throughput = 90;
  EXPECT_TRUE(has(audit(set), "MONOTONY", 1));
}

}  // namespace
}  // namespace mw::audit
