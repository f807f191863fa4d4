// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped serving examples on the simulator against the published cells that they are about. Nothing is fitted to
// them: efficiencies are those of other models' servers.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/files.h"
#include "core/compare/replay.h"
#include "core/formats/results/bench_result.h"
#include "core/jobs/sweep_run.h"
#include "core/serve/load/sweep.h"
#include "tests/shipped.h"

namespace mw::compare {
namespace {

namespace fs = std::filesystem;
using formats::BenchPoint;
using formats::BenchSet;

const fs::path kResources = MW_RESOURCES;

experiment::Experiment served_example(const std::string& target) {
  return experiment::Experiment::load(kResources / "examples" / ("paper-serve-" + target + ".json"));
}

BenchSet published(const std::string& target) {
  const Json document = read_json(kResources / "results/paper-2605.25645.json");
  for (const Json& json : document.at("sets")) {
    BenchSet set = formats::bench_set(json);
    if (set.target == target && set.name.find("burst") == std::string::npos) return set;
  }
  ADD_FAILURE() << target;
  return {};
}

// Of one prompt length, at every rate: caches as warm as the sweep leaves them.
std::vector<BenchPoint> simulated(const std::string& target, int input_len, int output_len,
                                  const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  const experiment::Experiment e = counterfactual(served_example(target), changes, test::context());
  std::vector<BenchPoint> points;
  experiment::Experiment one = e;
  one.set_value("sweep.output_len", output_len);
  for (const double rate : serve::sweep_settings(one.config()).request_rates)
    points.push_back(simulated_point(one, {rate, input_len}, test::context()));
  return points;
}

const BenchPoint& at_rate(const std::vector<BenchPoint>& points, double rate) {
  for (const BenchPoint& p : points)
    if (p.request_rate == rate) return p;
  return points.front();
}
// The best of the rates that the paper swept; the one of the cell where it has its own (all at once).
const BenchPoint& peak(const std::vector<BenchPoint>& points, const BenchPoint& cell) {
  if (!std::isnan(cell.request_rate)) return at_rate(points, cell.request_rate);
  const auto rate = [](const BenchPoint& p) { return std::isinf(p.request_rate) ? 0 : p.output_throughput; };
  return *std::max_element(points.begin(), points.end(),
                           [&](const auto& a, const auto& b) { return rate(a) < rate(b); });
}

class PaperServing : public testing::TestWithParam<const char*> {};

// Cells at about 16k tokens have other conditions: their times to the first token are below the floor of a prefill, and
// their rates are those of six requests in flight. The examples send six there (sweep.num_prompts_at).
bool apart(const BenchPoint& cell) {
  return cell.input_len > 15000;
}

TEST_P(PaperServing, PeakRatesAndTpotMatchTheTable) {
  int cells = 0;
  for (const BenchPoint& cell : published(GetParam()).points) {
    if (std::isnan(cell.output_throughput)) continue;
    const auto points = simulated(GetParam(), cell.input_len, cell.output_len);
    EXPECT_NEAR(peak(points, cell).output_throughput / cell.output_throughput, 1, 0.20) << cell.input_len;
    if (!std::isnan(cell.tpot.median)) {
      EXPECT_NEAR(peak(points, cell).tpot.median / cell.tpot.median, 1, 0.25) << cell.input_len;
    }
    ++cells;
  }
  EXPECT_EQ(cells, 5);
}

// With the 30 prompts that the paper states, the rates are 21 and 29 % below the published ones: in the 32 s that 474
// tokens/s leave, v6e-8 has no time for 30 prefills of 16k tokens beside 512 steps of what 30 such contexts take.
TEST_P(PaperServing, ThirtyPromptsDoNotExplainTheCellsAt16kTokens) {
  for (const BenchPoint& cell : published(GetParam()).points) {
    if (std::isnan(cell.output_throughput) || !apart(cell)) continue;
    const auto points = simulated(GetParam(), cell.input_len, cell.output_len, {{"sweep.num_prompts_at", "[]"}});
    EXPECT_NEAR(peak(points, cell).output_throughput / cell.output_throughput, 0.76, 0.06);
    EXPECT_GT(peak(points, cell).tpot.median / cell.tpot.median, 1.9);  // six in flight, not thirty
  }
}

// Peak x TPOT is 6.4 and 6.2 requests in flight there. Six prompts that repeat are answered from both caches (eight are
// not on GPUs), and then a third of the TTFT is the tokenizer's.
TEST_P(PaperServing, SixPromptsThatRepeatExplainTheCellsAt16kTokens) {
  int cells = 0;
  for (const BenchPoint& cell : published(GetParam()).points) {
    if (std::isnan(cell.ttft.median) || !apart(cell)) continue;
    const auto points = simulated(GetParam(), cell.input_len, cell.output_len);
    const BenchPoint& p = at_rate(points, 4);
    EXPECT_EQ(p.num_prompts, 6);
    EXPECT_GT(p.prefix_hits, 0.9);
    EXPECT_NEAR(p.ttft.median / cell.ttft.median, 1, 0.35);  // 20 s for thirty prompts
    ++cells;
  }
  EXPECT_EQ(cells, 1);
}

// Where all 30 prompts stay in the prefix cache: 42 to 61 ms for what takes hundreds when it is computed.
TEST_P(PaperServing, TtftFromTheCacheMatchesTheTable) {
  int cells = 0;
  for (const BenchPoint& cell : published(GetParam()).points) {
    if (std::isnan(cell.ttft.median) || apart(cell)) continue;
    const auto points = simulated(GetParam(), cell.input_len, cell.output_len);
    const BenchPoint& p = at_rate(points, cell.request_rate);
    if (p.prefix_hits < 0.9) continue;
    EXPECT_NEAR(p.ttft.median / cell.ttft.median, 1, 0.30) << cell.input_len;
    ++cells;
  }
  EXPECT_EQ(cells, std::string(GetParam()) == "v6e-8" ? 3 : 2);
}

INSTANTIATE_TEST_SUITE_P(Targets, PaperServing, testing::Values("v6e-8", "2xh100"),
                         [](const auto& target) { return std::string(target.index == 0 ? "tpu" : "gpu"); });

// The claim to explain: 61 ms against 1,443 ms at 4,096 tokens and 4 requests/s. Queues of servers at their limit are
// told within a factor: 2.3 s for 1.4, 8.9 for 7.2 on GPUs, 3.1 for 1.0 on v6e-8 at 8,192 tokens.
TEST(PaperServingCaches, PrefixCacheExplainsTheTtftGap) {
  const auto ttft = [](const char* target, int len, const char* cache) {
    return at_rate(simulated(target, len, 512, {{"serve.prefix_cache", cache}}), 4).ttft.median;
  };
  const double tpu = ttft("v6e-8", 4096, "true"), gpu = ttft("2xh100", 4096, "true");
  EXPECT_LT(tpu, 100);  // all 30 prompts fit its cache
  EXPECT_GT(gpu, 500);  // and not this one's: every prompt is computed again, at 94 % of what it can
  EXPECT_GT(ttft("v6e-8", 4096, "false"), 1.5 * tpu);
  EXPECT_GT(ttft("v6e-8", 8192, "true"), 5 * tpu);  // beyond its cache, too
  EXPECT_GT(ttft("2xh100", 8192, "true"), 3000);    // overloaded
}

TEST(PaperServingCaches, HitsOccurWhereThirtyPromptsFit) {
  const auto hits = [](const char* target, int len) { return at_rate(simulated(target, len, 512), 4).prefix_hits; };
  EXPECT_GT(hits("v6e-8", 4096), 0.9);
  EXPECT_LT(hits("v6e-8", 8192), 0.3);
  EXPECT_GT(hits("2xh100", 1024), 0.9);
  EXPECT_LT(hits("2xh100", 4096), 0.3);
}

}  // namespace
}  // namespace mw::compare
