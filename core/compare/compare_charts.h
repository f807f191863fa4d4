// SPDX-License-Identifier: Apache-2.0
// What the Compare page draws of runs beside each other: curves by load, by input length and of latency against
// throughput, distributions, heat maps, cost of serving over time. A column is a run. Plain values; any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/views/sweep_charts.h"

namespace mw::compare {

std::vector<int> input_lens(const std::vector<ComparedRun>& runs);               // of all, ascending
views::LoadAxis load_axis(const std::vector<ComparedRun>& runs);                 // of every load
views::LoadAxis load_axis(const std::vector<ComparedRun>& runs, int input_len);  // of those with this length
// What most runs have, of those what has the most points, then the smallest: where charts begin. 0 and empty: nothing.
int usual_input_len(const std::vector<ComparedRun>& runs);
std::string usual_load(const std::vector<ComparedRun>& runs);

struct ComparedLine {
  size_t column = 0;
  std::vector<views::ChartSample> samples;  // their points are indices in that column's set
};
// Of one input length, by load.
std::vector<ComparedLine> lines_by_load(const std::vector<ComparedRun>& runs, int input_len,
                                        const views::LoadAxis& axis, views::SweepMetric metric);
// By log2 of the input length: of each length the point at `load` (as load_text says it), or the lowest that says it.
std::vector<ComparedLine> lines_by_length(const std::vector<ComparedRun>& runs, const std::string& load,
                                          views::SweepMetric metric);
std::vector<std::string> loads_of(const std::vector<ComparedRun>& runs);  // texts, by place

struct ComparedCurve {  // points in the order of load
  size_t column = 0;
  std::vector<views::Point> path;  // x: output tokens/s, y: seconds
  std::vector<size_t> points;
};
std::vector<ComparedCurve> latency_against_throughput(const std::vector<ComparedRun>& runs, int input_len,
                                                      views::SweepMetric metric);

// Of each training run but the baseline: how far its training loss is from the baseline's at each step, in % and
// without sign. Steps that agree to the last bit are left out: charts of this are logarithmic.
std::vector<ComparedCurve> loss_differences(const std::vector<ComparedRun>& runs);

// Share of the values that are at most x, by x; empty for none.
std::vector<views::Point> cumulative(std::vector<double> values);
// TTFT or TPOT of every answered request, seconds; empty where the requests are not recorded.
std::vector<double> request_values(const formats::BenchPoint& point, views::SweepMetric metric);
// The point of that length and load; null where the run has none.
const formats::BenchPoint* point_at(const ComparedRun& run, int input_len, const std::string& load);

struct HeatMap {
  std::vector<std::string> loads{};   // columns
  std::vector<std::string> labels{};  // the same in short: "4", "burst"
  std::vector<int> lens{};            // rows
  struct Cell {
    double value = formats::kUnknown;
    double change = formats::kUnknown;  // against the baseline's cell: -0.96
    std::string mark{};                 // of the audit
    serve::Verdict verdict = serve::Verdict::fine;
  };
  std::vector<Cell> cells{};  // row by row
  const Cell& at(size_t row, size_t column) const { return cells[row * loads.size() + column]; }
};
HeatMap heat_map(const std::vector<ComparedRun>& runs, size_t column, views::SweepMetric metric);

// What serving costs over time: so many servers as the demand needs, each at its price, plus what was paid once.
struct ServingCost {
  size_t column = 0;
  double once_usd = 0, usd_per_hour = formats::kUnknown;  // of one server
  double output_tokens_s = formats::kUnknown;             // of one server, at its best recorded load
  int servers = 1;
  double at(double hours) const { return once_usd + usd_per_hour * servers * hours; }
};
// `demand`: output tokens/s, 0: one server each. `once_usd`: by column; else what its training cost. Runs without price
// or throughput are left out.
std::vector<ServingCost> serving_costs(const std::vector<ComparedRun>& runs, double demand,
                                       const std::vector<double>& once_usd);
// Hours after which both have cost the same; empty: one is never cheaper, or always.
std::optional<double> break_even(const ServingCost& a, const ServingCost& b);

}  // namespace mw::compare
