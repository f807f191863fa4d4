// SPDX-License-Identifier: Apache-2.0
// Rows of a serving comparison: differing settings, results of every load, and throughput and cost at the best rate per
// input length.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/compare/comparison_parts.h"
#include "core/plan/experiment/total_cost.h"
#include "core/views/sweep_view.h"

namespace mw::compare::comparing {
namespace {

using Better = ComparisonRow::Better;
using formats::BenchPoint;
using formats::BenchSet;
using formats::Definitions;
using formats::LatencyStats;

// Results of the same load. Lengths match within a few tokens, because random prompts vary in length.
struct Cell {
  BenchPoint load;                           // the first point with this load
  std::vector<std::vector<size_t>> columns;  // indices of points
};

bool are_near(int a, int b) {
  return a == b || std::abs(a - b) <= 0.02 * std::max(a, b);
}

bool same_load(const BenchPoint& a, const BenchPoint& b) {
  const bool rates = a.request_rate == b.request_rate || (std::isnan(a.request_rate) && std::isnan(b.request_rate)) ||
                     std::abs(a.request_rate - b.request_rate) <= 1e-6 * b.request_rate;
  return are_near(a.input_len, b.input_len) && are_near(a.output_len, b.output_len) && rates &&
         a.max_concurrency == b.max_concurrency;
}

double rank(double rate) {  // closed loops and unknown rates last
  return std::isnan(rate) ? std::numeric_limits<double>::infinity() : std::min(rate, 1e300);
}

std::vector<Cell> cells_of(const Runs& runs) {
  std::vector<Cell> cells;
  for (size_t c = 0; c < runs.size(); ++c)
    for (size_t i = 0; i < runs[c].sweep->set.points.size(); ++i) {
      const BenchPoint& point = runs[c].sweep->set.points[i];
      auto found =
          std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) { return same_load(cell.load, point); });
      if (found == cells.end()) {
        cells.push_back({.load = point, .columns = std::vector<std::vector<size_t>>(runs.size())});
        found = std::prev(cells.end());
      }
      found->columns[c].push_back(i);
    }
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    if (a.load.input_len != b.load.input_len) return a.load.input_len < b.load.input_len;
    return rank(a.load.request_rate) < rank(b.load.request_rate);
  });
  return cells;
}

std::string lengths_text(const BenchPoint& p) {
  const std::string in = p.input_len > 0 ? value_text(p.input_len) : "any";
  return p.output_len > 0 ? in + "/" + value_text(p.output_len) : in;
}

std::string cell_label(const BenchPoint& p) {
  if (std::isinf(p.request_rate)) return lengths_text(p) + ", all at once";
  if (!std::isnan(p.request_rate)) return lengths_text(p) + ", " + value_text(p.request_rate) + "/s";
  return lengths_text(p) + (p.max_concurrency > 0 ? ", " + counted(p.max_concurrency, "user") : ", any load");
}

struct Metric {
  std::string key, label, unit;
  Better better;
  std::function<double(const BenchSet&, const BenchPoint&)> value;
};

Metric latency(const std::string& stat, const std::string& name, const std::string& label,
               LatencyStats BenchPoint::*field) {
  const auto value = [stat, field](const BenchSet&, const BenchPoint& p) {
    const LatencyStats& s = p.*field;
    return stat == "mean" ? s.mean : s.percentile(stat == "median" ? 50 : 99);
  };
  return {stat + "_" + name + "_ms", stat + " " + label, "ms", Better::lower, value};
}

// Each definition of TPOT has its own rows.
Metric tpot(const std::string& stat, Definitions::Tpot definition) {
  std::string name = "tpot", label = "TPOT";
  if (definition == Definitions::Tpot::with_first) name = "tpot_with_first", label = "TPOT with the first token";
  if (definition == Definitions::Tpot::after_first_per_token)
    name = "tpot_after_first_per_token", label = "decode time / tokens";
  Metric m = latency(stat, name, label, &BenchPoint::tpot);
  m.value = [value = m.value, definition](const BenchSet& set, const BenchPoint& p) {
    return set.definitions.tpot == definition ? value(set, p) : formats::kUnknown;
  };
  return m;
}

Metric number(const char* key, const char* label, const char* unit, Better better, double BenchPoint::*field) {
  return {key, label, unit, better, [field](const BenchSet&, const BenchPoint& p) { return p.*field; }};
}

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all{
      latency("median", "ttft", "TTFT", &BenchPoint::ttft),
      latency("mean", "ttft", "TTFT", &BenchPoint::ttft),
      latency("p99", "ttft", "TTFT", &BenchPoint::ttft),
      tpot("median", Definitions::Tpot::after_first),
      tpot("mean", Definitions::Tpot::after_first),
      tpot("median", Definitions::Tpot::with_first),
      tpot("mean", Definitions::Tpot::with_first),
      tpot("median", Definitions::Tpot::after_first_per_token),
      tpot("mean", Definitions::Tpot::after_first_per_token),
      latency("p99", "itl", "ITL", &BenchPoint::itl),
      latency("median", "e2el", "E2E", &BenchPoint::e2el),
      latency("p99", "e2el", "E2E", &BenchPoint::e2el),
      number("output_throughput", "output", "tokens/s", Better::higher, &BenchPoint::output_throughput),
      number("request_throughput", "served", "requests/s", Better::higher, &BenchPoint::request_throughput),
      number("request_goodput", "goodput", "requests/s", Better::higher, &BenchPoint::request_goodput),
      number("prefix_hits", "prefix hits", "", Better::neither, &BenchPoint::prefix_hits)};
  return all;
}

// Shows the mean only if some column has no median.
bool is_redundant_mean(const Metric& m, const Comparison& out, const std::string& cell) {
  if (!m.key.starts_with("mean_")) return false;
  const std::string median = cell + ".median_" + m.key.substr(5);
  const auto row = std::find_if(out.rows.begin(), out.rows.end(), [&](const auto& r) { return r.key == median; });
  return row != out.rows.end() &&
         std::all_of(row->values.begin(), row->values.end(), [](const auto& v) { return v.has_value(); });
}

void add_marks(std::string& text, const ComparedRun& run, const std::vector<size_t>& points,
               const std::string& metric) {
  for (const audit::AuditFinding& f : run.sweep->findings) {
    if (f.metric != metric || f.verdict == audit::Verdict::fine ||
        std::find(points.begin(), points.end(), f.point) == points.end())
      continue;
    const std::string one = (f.rule == "TOO-FEW" ? "few requests" : std::string(to_string(f.verdict))) + ": " + f.text;
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : "; ") + one;
  }
}

// Averages repeated measurements of the same load.
double value_of(const Metric& m, const ComparedRun& run, const std::vector<size_t>& points) {
  double sum = 0;
  int n = 0;
  for (const size_t i : points)
    if (const double v = m.value(run.sweep->set, run.sweep->set.points[i]); std::isfinite(v)) sum += v, ++n;
  return n > 0 ? sum / n : formats::kUnknown;
}

void add_cell(const Runs& runs, const Cell& cell, Comparison& out) {
  for (const Metric& m : metrics()) {
    if (is_redundant_mean(m, out, cell_key(cell.load))) continue;
    std::vector<double> values;
    for (size_t c = 0; c < runs.size(); ++c) values.push_back(value_of(m, runs[c], cell.columns[c]));
    const ResultRow result{cell_key(cell.load) + "." + m.key, cell_label(cell.load) + ": " + m.label, m.unit, m.better};
    if (ComparisonRow* row = add_result(out, result, values))
      for (size_t c = 0; c < runs.size(); ++c) add_marks(row->marks[c], runs[c], cell.columns[c], m.key);
  }
}

// Peak output throughput over all loads with these lengths, and the cost per million tokens at that load.
struct Peak {
  double rate = formats::kUnknown;
  std::vector<size_t> points{};
};
Peak peak_of(const ComparedRun& run, const BenchPoint& lengths) {
  Peak peak;
  for (size_t i = 0; i < run.sweep->set.points.size(); ++i) {
    const BenchPoint& p = run.sweep->set.points[i];
    if (!are_near(p.input_len, lengths.input_len) || !are_near(p.output_len, lengths.output_len)) continue;
    if (std::isfinite(p.output_throughput) && !(p.output_throughput <= peak.rate)) peak = {p.output_throughput, {i}};
  }
  return peak;
}

void add_peaks(const Runs& runs, const std::vector<Cell>& cells, Comparison& out) {
  std::vector<BenchPoint> done;
  for (const Cell& cell : cells) {
    if (std::any_of(done.begin(), done.end(), [&](const BenchPoint& d) {
          return are_near(d.input_len, cell.load.input_len) && are_near(d.output_len, cell.load.output_len);
        }))
      continue;
    done.push_back(cell.load);
    std::vector<double> rates, usd;
    std::vector<Peak> peaks;
    for (const ComparedRun& run : runs) {
      peaks.push_back(peak_of(run, cell.load));
      rates.push_back(peaks.back().rate);
      usd.push_back(run.sweep->set.usd_per_hour / 3600 / peaks.back().rate * 1e6);
    }
    const std::string key = std::to_string(cell.load.input_len) + "/" + std::to_string(cell.load.output_len);
    const std::string label = lengths_text(cell.load);
    if (ComparisonRow* row = add_result(
            out, {key + ".peak_output_throughput", label + ": peak output", "tokens/s", Better::higher}, rates))
      for (size_t c = 0; c < runs.size(); ++c) add_marks(row->marks[c], runs[c], peaks[c].points, "output_throughput");
    add_result(out,
               {key + ".usd_per_million_output_tokens", label + ": cost at that rate", "USD/1M tokens", Better::lower},
               usd);
  }
}

// Adds the rate that meets the SLO and the knee, by input length.
void add_capacities(const Runs& runs, Comparison& out) {
  std::set<int> lengths;
  for (const ComparedRun& run : runs)
    for (const views::SweepLine& line : run.sweep->lines) lengths.insert(line.input_len);
  for (const int length : lengths) {
    std::vector<double> at_slo(runs.size(), formats::kUnknown), knee = at_slo;
    std::vector<std::string> marks(runs.size());
    for (size_t c = 0; c < runs.size(); ++c)
      for (const views::SweepLine& line : runs[c].sweep->lines)
        if (line.input_len == length) {
          if (runs[c].sweep->slo.any()) at_slo[c] = line.capacity.at_slo;
          if (runs[c].sweep->slo.any() && (!line.capacity.failing_below.empty() || !line.capacity.too_short.empty()))
            marks[c] = "suspicious: " + serve::slo_text(line.capacity);
          knee[c] = line.capacity.knee;
        }
    const std::string key = std::to_string(length), label = value_text(length);
    add_result(out, {key + ".capacity_at_slo", label + ": capacity at the SLO", "requests/s", Better::higher}, at_slo,
               std::move(marks));
    add_result(out, {key + ".knee", label + ": knee", "requests/s", Better::higher}, knee);
  }
}

// Adds the total cost: training once, then serving by the hour.
void add_tco(const Runs& runs, Comparison& out) {
  std::vector<std::optional<plan::Tco>> all;
  for (const ComparedRun& run : runs) {
    const double hourly = run.sweep->set.usd_per_hour;
    if (run.train_usd && std::isfinite(hourly))
      all.emplace_back(plan::Tco{
          .name = run.name, .train_hours = 1, .train_usd_per_hour = *run.train_usd, .serve_usd_per_hour = hourly});
    else
      all.emplace_back(std::nullopt);
  }
  for (const int hours : {1, 8, 24}) {
    std::vector<double> usd;
    for (const auto& tco : all) usd.push_back(tco ? tco->after(hours).value : formats::kUnknown);
    const std::string n = std::to_string(hours);
    add_result(out, {"tco." + n + "h", "training and " + n + " h of serving", "USD", Better::lower}, usd);
  }
  std::vector<double> even(runs.size(), formats::kUnknown);
  for (size_t c = 1; c < runs.size(); ++c)
    if (all[0] && all[c]) even[c] = plan::break_even_hours(*all[0], *all[c]).value_or(formats::kUnknown);
  add_result(out, {"tco.break_even", "costs as much as the baseline after", "h", Better::neither}, even);
}

std::string text_or_empty(double v) {
  return std::isfinite(v) ? value_text(v) : std::string();
}

void add_settings(const Runs& runs, Comparison& out) {
  const auto row = [&](const std::string& key, const std::string& label, auto text,
                       MissingValue missing = MissingValue::ignored) {
    std::vector<std::string> texts;
    for (const ComparedRun& run : runs) texts.push_back(text(run, run.sweep->set));
    add_setting(out, key, label, std::move(texts), missing);
  };
  row("provenance", "Source",
      [](const ComparedRun& r, const BenchSet&) { return std::string(to_string(r.provenance)); });
  row("tool", "Tool", [](const ComparedRun&, const BenchSet& s) { return s.tool; });
  row("model", "Model", [](const ComparedRun&, const BenchSet& s) { return s.model; });
  row("target", "Target", [](const ComparedRun&, const BenchSet& s) { return s.target; });
  row("chips", "Chips", [](const ComparedRun&, const BenchSet& s) { return s.chips ? std::to_string(s.chips) : ""; });
  row("usd_per_hour", "USD per hour",
      [](const ComparedRun&, const BenchSet& s) { return text_or_empty(s.usd_per_hour); });
  row("train_usd", "Training, USD",
      [](const ComparedRun& r, const BenchSet&) { return r.train_usd ? text_or_empty(*r.train_usd) : ""; });
  std::set<std::string> keys;
  for (const ComparedRun& run : runs)
    for (const auto& [key, value] : run.sweep->set.conditions) keys.insert(key);
  for (const std::string& key : keys)
    row(
        key, key, [&](const ComparedRun&, const BenchSet& s) { return s.condition(key); }, missing_condition(key));
  for (const auto& [key, label] : {std::pair("tpot", "Definition of TPOT"),
                                   {"start", "Start of latencies"},
                                   {"peak", "Definition of output rate"}})
    row(std::string("definitions.") + key, label,
        [key = key](const ComparedRun&, const BenchSet& s) { return definition_of(s, key); });
}

}  // namespace

std::string cell_key(const BenchPoint& p) {
  std::string key = std::to_string(p.input_len) + "/" + std::to_string(p.output_len);
  if (std::isinf(p.request_rate)) return key + "@inf";
  if (!std::isnan(p.request_rate)) return key + "@" + number_text(p.request_rate, 6);
  return key + (p.max_concurrency > 0 ? "@c" + std::to_string(p.max_concurrency) : "@?");
}

void serving(const Runs& runs, Comparison& out) {
  add_settings(runs, out);
  const std::vector<Cell> cells = cells_of(runs);
  add_peaks(runs, cells, out);
  for (const Cell& cell : cells) add_cell(runs, cell, out);
  add_capacities(runs, out);
  add_tco(runs, out);
  serving_confounders(runs, out);
}

}  // namespace mw::compare::comparing
