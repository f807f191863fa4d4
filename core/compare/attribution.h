// SPDX-License-Identifier: Apache-2.0
// Estimates how much of the gap between the baseline and another column each difference explains: the planner
// (training: speed) or the simulator (serving: a latency at a common load) predicts the baseline with only that
// difference changed. Shares are of logarithms, because effects multiply; they need not add up to 1, because
// differences interact and predictions have errors. Thread-safe.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/compare/replay.h"
#include "core/experiment/experiment.h"

namespace mw::compare {

// Splits the gap between two servers into parts by changing one factor at a time and simulating each step; the parts
// add up to the gap. The order is fixed (hardware first), because the parts depend on it. Slow: one simulation per
// factor.
enum class WaterfallMetric { median_ttft_ms, median_tpot_ms, median_e2el_ms, output_throughput };
double value_of(const formats::BenchPoint& point, WaterfallMetric metric);

struct WaterfallPart {
  std::string name;              // "target", "KV type", "queueing", "the rest" ...
  std::string text;              // "v6e-8 -> 2xh100"
  double before = 0, after = 0;  // in the unit of the metric
  formats::ResultProvenance source = formats::ResultProvenance::predicted;
  double delta() const { return after - before; }
};
struct Waterfall {
  WaterfallMetric metric{};
  plan::LoadPoint point;
  double from = 0, to = 0;
  std::vector<WaterfallPart> parts;  // contiguous from `from` to `to`
};
struct WaterfallEnds {
  std::optional<double> from, to;
};
struct WaterfallRequest {
  const experiment::Experiment &baseline, &other;
  plan::LoadPoint point;
  WaterfallMetric metric{};
  WaterfallEnds measured{};  // replace the simulated values of the ends; the difference is a part for the model error
};
// For latencies, each factor is simulated without queueing, and queueing is a separate part. Throws cancelled() after a
// stop.
Waterfall waterfall(const WaterfallRequest& request, const plan::PlanContext& context,
                    const std::stop_token& stop = {});

// The predictions to make, copied from the columns, which may then change.
struct GapInput {
  Gap gap{};  // without predictions
  std::vector<experiment::Experiment> documents{};
  std::optional<plan::LoadPoint> load{};  // serving
  WaterfallMetric metric{};               // serving
  std::vector<double> row_tokens{};       // training: mean tokens of a row, by column; NaN: not recorded
};
GapInput gap_input(const Comparison& comparison, const std::vector<ComparedRun>& runs);

// Adds the effects of all settings and confounders, sorts the confounders by their share, and renews the verdict: a
// confounder that changes nothing but speed, and that by less than 1 %, does not count. What cannot be predicted has a
// reason. Slow for serving: one simulation per difference and column. Throws only cancelled().
Comparison with_effects(Comparison comparison, const GapInput& input, const plan::PlanContext& context,
                        const std::stop_token& stop = {});

inline constexpr std::string_view kLoadFactor = "load";

// A factor by which two servers differ; they are changed one at a time in a fixed order, hardware first.
struct FactorChange {
  std::string name{};               // "chips and software", "KV type" ...
  std::string text{};               // "target.id: v6e-8 -> 2xh100"
  experiment::Experiment server{};  // the baseline with this change and all before it
};
// Factors that do not differ are left out. Keys that belong to no factor stay those of the baseline.
std::vector<FactorChange> factor_changes(const experiment::Experiment& baseline, const experiment::Experiment& other);

}  // namespace mw::compare
