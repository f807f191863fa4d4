// SPDX-License-Identifier: GPL-3.0-or-later
// What explains a gap adds up to it.
#include "core/compare/attribution.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/shipped.h"

namespace mw::compare {
namespace {

using formats::BenchPoint;
using test::context;

experiment::Experiment server(const char* target, int tp) {
  experiment::Experiment e;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"kind", "serve"},
                                                        {"model.id", "gemma3-1b"},
                                                        {"target.id", target},
                                                        {"mesh.tp", std::to_string(tp)},
                                                        {"train.dtype", "bf16"},
                                                        {"sweep.request_rates", "[1, 4, 16]"},
                                                        {"sweep.num_prompts", "20"},
                                                        {"sweep.output_len", "64"},
                                                        {"sweep.prompts", "replayed"}})
    e.set(key, value);
  return e;
}

void expect_whole(const Waterfall& w) {
  ASSERT_FALSE(w.parts.empty());
  EXPECT_DOUBLE_EQ(w.parts.front().before, w.from);
  EXPECT_DOUBLE_EQ(w.parts.back().after, w.to);
  double sum = 0;
  for (size_t i = 0; i < w.parts.size(); ++i) {
    if (i > 0) {
      EXPECT_DOUBLE_EQ(w.parts[i].before, w.parts[i - 1].after) << w.parts[i].name;
    }
    EXPECT_FALSE(w.parts[i].text.empty());
    sum += w.parts[i].delta();
  }
  EXPECT_NEAR(sum, w.to - w.from, 1e-9 * std::max(1.0, std::abs(w.to)));
}

std::vector<std::string> names(const Waterfall& w) {
  std::vector<std::string> out;
  for (const WaterfallPart& p : w.parts) out.push_back(p.name);
  return out;
}

TEST(Waterfall, PartsAddUpToTheGapForEveryMetric) {
  const experiment::Experiment a = server("v6e-1", 1);
  experiment::Experiment b = server("1xh100", 1);
  b.set("serve.kv_dtype", "fp8");
  b.set("serve.prefix_cache", "false");
  b.set("sweep.num_prompts", "30");
  for (const auto metric : {WaterfallMetric::median_ttft_ms, WaterfallMetric::median_tpot_ms,
                            WaterfallMetric::median_e2el_ms, WaterfallMetric::output_throughput}) {
    const Waterfall w = waterfall({a, b, {4, 512}, metric}, context());
    expect_whole(w);
    EXPECT_THAT(names(w), testing::IsSupersetOf({"chips and software", "KV type", "prefix cache", "load"}));
    EXPECT_EQ(metric != WaterfallMetric::output_throughput, names(w).back() == "queueing");
  }
}

TEST(Waterfall, OnlyDifferingFactorsHaveAPart) {
  const experiment::Experiment a = server("v6e-1", 1);
  experiment::Experiment b = a;
  b.set("serve.prefix_cache", "false");
  const Waterfall w = waterfall({a, b, {4, 2048}, WaterfallMetric::median_ttft_ms}, context());
  expect_whole(w);
  EXPECT_THAT(names(w), testing::ElementsAre("prefix cache", "queueing"));
  EXPECT_GT(w.parts[0].delta(), 0);  // prompts are computed again
  const Waterfall none = waterfall({a, a, {4, 512}, WaterfallMetric::median_tpot_ms}, context());
  EXPECT_THAT(names(none), testing::ElementsAre("queueing"));
  EXPECT_EQ(none.to, none.from);
}

TEST(Waterfall, MeasuredEndsAddTheModelError) {
  const experiment::Experiment a = server("v6e-1", 1), b = server("1xh100", 1);
  const Waterfall w = waterfall({a, b, {4, 512}, WaterfallMetric::median_tpot_ms, {.from = 5.0, .to = 9.0}}, context());
  expect_whole(w);
  EXPECT_EQ(w.from, 5.0);
  EXPECT_EQ(w.to, 9.0);
  EXPECT_EQ(names(w).front(), "model's error at the baseline");
  EXPECT_EQ(names(w).back(), "model's error at the other");
}

TEST(Waterfall, AStopEndsItBeforeItsParts) {
  std::stop_source stop;
  stop.request_stop();
  const experiment::Experiment a = server("v6e-1", 1), b = server("1xh100", 1);
  try {
    waterfall({a, b, {4, 512}, WaterfallMetric::median_tpot_ms}, context(), stop.get_token());
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::cancelled);
  }
}

}  // namespace
}  // namespace mw::compare
