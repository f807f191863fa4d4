// SPDX-License-Identifier: Apache-2.0
// Chart data of the Compare page: curves by load, by input length and of latency against throughput, distributions,
// heat maps, cost of serving over time. `column` is the index of a run. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/views/sweep_view.h"

namespace mw::compare {

std::vector<int> input_lens(const std::vector<ComparedRun>& runs);               // of all runs, ascending
views::LoadAxis load_axis(const std::vector<ComparedRun>& runs);                 // with all loads
views::LoadAxis load_axis(const std::vector<ComparedRun>& runs, int input_len);  // with the loads of this length
// Return the value that most runs have, ties broken by number of points, then the smallest: the initial selection of
// charts. 0 and empty without points.
int usual_input_len(const std::vector<ComparedRun>& runs);
std::string usual_load(const std::vector<ComparedRun>& runs);

struct ComparedLine {
  size_t column = 0;
  std::vector<views::ChartSample> samples;  // `points` are indices into the set of that run
};
// Lines by load for one input length.
std::vector<ComparedLine> lines_by_load(const std::vector<ComparedRun>& runs, int input_len,
                                        const views::LoadAxis& axis, views::SweepMetric metric);
// Lines by log2 of the input length, from the points at `load` (a load_text()), else at the lowest load that has the
// metric.
std::vector<ComparedLine> lines_by_length(const std::vector<ComparedRun>& runs, const std::string& load,
                                          views::SweepMetric metric);
std::vector<std::string> loads_of(const std::vector<ComparedRun>& runs);  // texts, ascending by load

struct ComparedCurve {  // points in order of load
  size_t column = 0;
  std::vector<views::Point> path;  // x: output tokens/s, y: seconds
  std::vector<size_t> points;
};
std::vector<ComparedCurve> latency_against_throughput(const std::vector<ComparedRun>& runs, int input_len,
                                                      views::SweepMetric metric);
// Returns the points of a size run: x: tokens/s of the batch, y: seconds of its step, or USD per million tokens.
enum class SizeCost { seconds, usd };
std::vector<ComparedCurve> size_trade_off(const std::vector<ComparedRun>& runs, SizeCost cost);
// Returns the points of all curves that no other point beats in both: none has more x at no more y. Ascending.
std::vector<views::Point> pareto_front(const std::vector<ComparedCurve>& curves);

// Returns, for each training run but the baseline, the absolute difference of its training loss from the baseline's at
// each step, in %. Omits steps without a difference, because the chart is logarithmic.
std::vector<ComparedCurve> loss_differences(const std::vector<ComparedRun>& runs);

// Returns the cumulative distribution: the share of values that are at most x. Empty without values.
std::vector<views::Point> cumulative(std::vector<double> values);
// Returns TTFT or TPOT of every answered request in seconds; empty if requests are not recorded.
std::vector<double> request_values(const formats::BenchPoint& point, views::SweepMetric metric);
// Returns the point with this length and load; null if the run has none.
const formats::BenchPoint* point_at(const ComparedRun& run, int input_len, const std::string& load);

struct HeatMap {
  std::vector<std::string> loads{};   // columns
  std::vector<std::string> labels{};  // short texts of the columns: "4", "burst"
  std::vector<int> lens{};            // rows
  struct Cell {
    double value = formats::kUnknown;
    double change = formats::kUnknown;  // relative to the baseline's cell: -0.96
    std::string mark{};                 // audit finding
    audit::Verdict verdict = audit::Verdict::fine;
  };
  std::vector<Cell> cells{};  // row by row
  const Cell& at(size_t row, size_t column) const { return cells[row * loads.size() + column]; }
};
HeatMap heat_map(const std::vector<ComparedRun>& runs, size_t column, views::SweepMetric metric);

// Cost of serving over time: a fixed cost plus the hourly price of as many servers as the demand needs.
struct ServingCost {
  size_t column = 0;
  double once_usd = 0, usd_per_hour = formats::kUnknown;  // of one server
  double output_tokens_s = formats::kUnknown;             // of one server, at its best recorded load
  int servers = 1;
  double at(double hours) const { return once_usd + usd_per_hour * servers * hours; }
};
// `demand` is in output tokens/s; 0 means one server per run. `once_usd` is the fixed cost by run; the default is the
// training cost. Omits runs without price or throughput.
std::vector<ServingCost> serving_costs(const std::vector<ComparedRun>& runs, double demand,
                                       const std::vector<double>& once_usd);
// Returns the hours after which both have the same total cost; empty if the curves do not cross.
std::optional<double> break_even(const ServingCost& a, const ServingCost& b);

}  // namespace mw::compare
