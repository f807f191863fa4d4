// SPDX-License-Identifier: Apache-2.0
// Splits the gap between two servers into parts by changing one factor at a time and simulating each step; the parts
// add up to the gap. The order is fixed (hardware first), because the parts depend on it. Slow: one simulation per
// factor.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/replay.h"

namespace mw::compare {

enum class WaterfallMetric { median_ttft_ms, median_tpot_ms, median_e2el_ms, output_throughput };
double value_of(const formats::BenchPoint& point, WaterfallMetric metric);

struct WaterfallPart {
  std::string name;              // "target", "KV type", "queueing", "the rest" ...
  std::string text;              // "v6e-8 -> 2xh100"
  double before = 0, after = 0;  // in the unit of the metric
  formats::Provenance source = formats::Provenance::predicted;
  double delta() const { return after - before; }
};
struct Waterfall {
  WaterfallMetric metric{};
  LoadPoint point;
  double from = 0, to = 0;
  std::vector<WaterfallPart> parts;  // contiguous from `from` to `to`
};
struct WaterfallEnds {
  std::optional<double> from, to;
};
struct WaterfallRequest {
  const experiment::Experiment &baseline, &other;
  LoadPoint point;
  WaterfallMetric metric{};
  WaterfallEnds measured{};  // replace the simulated values of the ends; the difference is a part for the model error
};
// For latencies, each factor is simulated without queueing, and queueing is a separate part. Throws cancelled() after a
// stop.
Waterfall waterfall(const WaterfallRequest& request, const plan::PlanContext& context,
                    const std::stop_token& stop = {});

}  // namespace mw::compare
