// SPDX-License-Identifier: Apache-2.0
// What explains a gap: from a baseline to another server one factor at a time, each simulated, so that the parts add up
// to the gap. The order is fixed (hardware first), as the parts depend on it. Pure but slow (a simulation a factor).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/replay.h"

namespace mw::compare {

enum class WaterfallMetric { median_ttft_ms, median_tpot_ms, median_e2el_ms, output_throughput };
std::string_view to_string(WaterfallMetric metric);
double value_of(const formats::BenchPoint& point, WaterfallMetric metric);

struct WaterfallPart {
  std::string name;              // "target", "KV type", "queueing", "the rest" ...
  std::string text;              // "v6e-8 -> 2xh100"
  double before = 0, after = 0;  // the metric, in its unit
  formats::Provenance source = formats::Provenance::predicted;
  double delta() const { return after - before; }
};
struct Waterfall {
  WaterfallMetric metric{};
  LoadPoint point;
  double from = 0, to = 0;
  std::vector<WaterfallPart> parts;  // each begins where the one before ends; the last ends at `to`
};
// Latencies: factors switch for one request at a time, and what waiting adds is a part of its own. `measured` values of
// both ends replace the simulated ones, where known; the difference is a part named for the model's error. Throws Error
// of kind cancelled where `stop` came first.
struct WaterfallEnds {
  std::optional<double> from, to;
};
Waterfall waterfall(const experiment::Experiment& baseline, const experiment::Experiment& other, const LoadPoint& point,
                    WaterfallMetric metric, const hardware::Catalogue& catalogue, const WaterfallEnds& measured = {},
                    const std::stop_token& stop = {});

}  // namespace mw::compare
