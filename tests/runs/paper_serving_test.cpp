// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped serving examples on the simulator against the published cells that they are about. Nothing is fitted to
// them: efficiencies are those of other models' servers.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/files.h"
#include "core/formats/bench_result.h"
#include "core/runs/replay.h"
#include "core/runs/sweep_run.h"
#include "tests/shipped.h"

namespace mw::runs {
namespace {

namespace fs = std::filesystem;
using formats::BenchPoint;
using formats::BenchSet;

const fs::path kResources = MW_RESOURCES;

Experiment example(const std::string& target) {
  return Experiment::load(kResources / "examples" / ("paper-serve-" + target + ".json"));
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
  const Experiment e = counterfactual(example(target), changes, test::catalogue());
  std::vector<BenchPoint> points;
  Experiment one = e;
  one.set_value("sweep.output_len", output_len);
  for (const double rate : sweep_settings(one).request_rates)
    points.push_back(simulated_point(one, {rate, input_len}, test::catalogue()));
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

// How far the model is from a cell: within the aim, or further for a reason that is written down.
struct Within {
  double peak = 0.20, tpot = 0.25;
};
Within within(const std::string& target, int input_len) {
  // Its own burst of 64 prompts of 128/256 ended in 5.0 s on the same chips; these 30 of 512/256 took 5.5 s.
  if (target == "v6e-8" && input_len == 512) return {.peak = 0.50};
  // 25.5 %: reading all of a window's layers is a little too much, reading the window alone 20 % too little.
  if (target == "v6e-8" && input_len == 8192) return {.tpot = 0.30};
  // 449 tokens/s at 45 ms are 20 requests in flight, twice what its KV cache holds of them without a window's saving.
  if (target == "2xh100" && input_len == 8192) return {.tpot = 0.50};
  return {};
}

// Cells at about 16k tokens are left out: their times to the first token are below the floor of a prefill, and their
// rates are those of six requests in flight, so that they belong to other conditions than the sweep's.
TEST_P(PaperServing, PeakRatesAndTimesPerTokenAreThoseOfTheTable) {
  int cells = 0;
  for (const BenchPoint& cell : published(GetParam()).points) {
    if (std::isnan(cell.output_throughput) || cell.input_len > 15000) continue;
    const auto points = simulated(GetParam(), cell.input_len, cell.output_len);
    const Within aim = within(GetParam(), cell.input_len);
    EXPECT_NEAR(peak(points, cell).output_throughput / cell.output_throughput, 1, aim.peak) << cell.input_len;
    if (!std::isnan(cell.tpot.median)) {
      EXPECT_NEAR(peak(points, cell).tpot.median / cell.tpot.median, 1, aim.tpot) << cell.input_len;
    }
    ++cells;
  }
  EXPECT_EQ(cells, 4);
}

INSTANTIATE_TEST_SUITE_P(Targets, PaperServing, testing::Values("v6e-8", "2xh100"),
                         [](const auto& target) { return std::string(target.index == 0 ? "tpu" : "gpu"); });

// The claim to explain: 61 ms against 1,443 ms at 4,096 tokens and 4 requests/s.
TEST(PaperServingCaches, TheGapInTimeToTheFirstTokenIsThePrefixCaches) {
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

TEST(PaperServingCaches, HitsAreWhereThirtyPromptsFit) {
  const auto hits = [](const char* target, int len) { return at_rate(simulated(target, len, 512), 4).prefix_hits; };
  EXPECT_GT(hits("v6e-8", 4096), 0.9);
  EXPECT_LT(hits("v6e-8", 8192), 0.3);
  EXPECT_GT(hits("2xh100", 1024), 0.9);
  EXPECT_LT(hits("2xh100", 4096), 0.3);
}

}  // namespace
}  // namespace mw::runs
