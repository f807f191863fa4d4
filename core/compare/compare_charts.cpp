// SPDX-License-Identifier: Apache-2.0
#include "core/compare/compare_charts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/experiment/bound_experiment.h"
#include "core/views/series.h"
#include "core/views/size_view.h"

namespace mw::compare {
namespace {

const formats::BenchSet* set_of(const ComparedRun& run) {
  return run.sweep ? &run.sweep->set : nullptr;
}

const views::SweepLine* line_of(const ComparedRun& run, int input_len) {
  if (!run.sweep) return nullptr;
  for (const views::SweepLine& line : run.sweep->lines)
    if (line.input_len == input_len) return &line;
  return nullptr;
}

// Returns the points of a line that have this metric at the load, else at the lowest load that has it.
std::vector<size_t> points_at(const formats::BenchSet& set, const views::SweepLine& line, const std::string& load,
                              views::SweepMetric metric) {
  const auto has_metric = [&](size_t i) {
    return std::isfinite(views::metric_value(set.points[i], metric, set.usd_per_hour).value);
  };
  std::vector<size_t> found;
  for (const size_t i : line.points)
    if (views::load_text(set.points[i]) == load && has_metric(i)) found.push_back(i);
  if (!found.empty()) return found;
  for (const size_t i : line.points)
    if (has_metric(i)) return {i};
  return found;
}

template <class Value, class Has>
Value most_common(const std::vector<Value>& all, const std::vector<ComparedRun>& runs, Has has) {
  Value best{};
  std::pair<size_t, size_t> most{0, 0};  // runs, points
  for (const Value& value : all) {
    std::pair<size_t, size_t> now{0, 0};
    for (const ComparedRun& run : runs) {
      const auto* set = set_of(run);
      const auto points =
          !set ? 0
               : std::count_if(set->points.begin(), set->points.end(), [&](const auto& p) { return has(p, value); });
      now.first += points > 0;
      now.second += static_cast<size_t>(points);
    }
    if (now > most) best = value, most = now;
  }
  return best;
}

}  // namespace

std::vector<int> input_lens(const std::vector<ComparedRun>& runs) {
  std::set<int> lens;
  for (const ComparedRun& run : runs)
    if (run.sweep)
      for (const views::SweepLine& line : run.sweep->lines) lens.insert(line.input_len);
  return {lens.begin(), lens.end()};
}

views::LoadAxis load_axis(const std::vector<ComparedRun>& runs) {
  views::LoadAxis axis;
  for (const ComparedRun& run : runs)
    if (const auto* set = set_of(run))
      for (const auto& p : set->points) axis.add(p);
  return axis;
}

views::LoadAxis load_axis(const std::vector<ComparedRun>& runs, int input_len) {
  views::LoadAxis axis;
  for (const ComparedRun& run : runs)
    if (const auto* line = line_of(run, input_len))
      for (const size_t i : line->points) axis.add(run.sweep->set.points[i]);
  return axis;
}

int usual_input_len(const std::vector<ComparedRun>& runs) {
  return most_common<int>(input_lens(runs), runs,
                          [](const formats::BenchPoint& p, int len) { return p.input_len == len; });
}

std::string usual_load(const std::vector<ComparedRun>& runs) {
  return most_common<std::string>(loads_of(runs), runs, [](const formats::BenchPoint& p, const std::string& load) {
    return views::load_text(p) == load;
  });
}

std::vector<std::string> loads_of(const std::vector<ComparedRun>& runs) {
  const views::LoadAxis axis = load_axis(runs);
  std::vector<std::pair<double, std::string>> all;
  for (const ComparedRun& run : runs)
    if (const auto* set = set_of(run))
      for (const auto& p : set->points) all.emplace_back(axis.place(p), views::load_text(p));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::string> out;
  for (auto& [place, text] : all) out.push_back(std::move(text));
  return out;
}

std::vector<ComparedLine> lines_by_load(const std::vector<ComparedRun>& runs, int input_len,
                                        const views::LoadAxis& axis, views::SweepMetric metric) {
  std::vector<ComparedLine> out;
  const auto place = [&](const formats::BenchPoint& p) { return axis.place(p); };
  for (size_t c = 0; c < runs.size(); ++c)
    if (const auto* line = line_of(runs[c], input_len))
      out.push_back({c, views::samples_of(runs[c].sweep->set, line->points, place, metric)});
  return out;
}

std::vector<ComparedLine> lines_by_length(const std::vector<ComparedRun>& runs, const std::string& load,
                                          views::SweepMetric metric) {
  std::vector<ComparedLine> out;
  const auto place = [](const formats::BenchPoint& p) { return std::log2(std::max(1, p.input_len)); };
  for (size_t c = 0; c < runs.size(); ++c) {
    if (!runs[c].sweep) continue;
    const formats::BenchSet& set = runs[c].sweep->set;
    std::vector<size_t> points;
    for (const views::SweepLine& line : runs[c].sweep->lines)
      for (const size_t i : points_at(set, line, load, metric)) points.push_back(i);
    out.push_back({c, views::samples_of(set, points, place, metric)});
  }
  return out;
}

std::vector<ComparedCurve> latency_against_throughput(const std::vector<ComparedRun>& runs, int input_len,
                                                      views::SweepMetric metric) {
  std::vector<ComparedCurve> out;
  for (size_t c = 0; c < runs.size(); ++c) {
    const views::SweepLine* line = line_of(runs[c], input_len);
    if (!line) continue;
    ComparedCurve curve{.column = c, .path = {}, .points = {}};
    for (const size_t i : line->points) {
      const auto& p = runs[c].sweep->set.points[i];
      const double y = views::metric_value(p, metric, runs[c].sweep->set.usd_per_hour).value;
      if (!std::isfinite(p.output_throughput) || !std::isfinite(y)) continue;
      curve.path.push_back({p.output_throughput, y});
      curve.points.push_back(i);
    }
    if (!curve.path.empty()) out.push_back(std::move(curve));
  }
  return out;
}

std::vector<ComparedCurve> size_trade_off(const std::vector<ComparedRun>& runs, SizeCost cost) {
  std::vector<ComparedCurve> out;
  for (size_t c = 0; c < runs.size(); ++c) {
    if (kind_of(runs[c]) != ComparedKind::sizing) continue;
    const double price = runs[c].experiment.valid_values().price.usd_per_chip_hour;
    for (const auto& line : views::size_view(*runs[c].training).lines) {
      ComparedCurve curve{.column = c, .path = {}, .points = {}};
      for (const serve::MeasuredSize& p : line.points) {
        if (!p.measured) continue;
        const double speed = p.measured->tokens_per_second();
        const double usd =
            price > 0 ? views::usd_per_million(price * runs[c].training->devices(), speed) : formats::kUnknown;
        const double y = cost == SizeCost::usd ? usd : p.measured->seconds;
        if (std::isfinite(speed) && std::isfinite(y)) curve.path.push_back({speed, y});
      }
      if (!curve.path.empty()) out.push_back(std::move(curve));
    }
  }
  return out;
}

std::vector<views::Point> pareto_front(const std::vector<ComparedCurve>& curves) {
  std::vector<views::Point> all, front;
  for (const ComparedCurve& curve : curves) all.insert(all.end(), curve.path.begin(), curve.path.end());
  const std::vector<bool> on_front = views::pareto_front(all, views::Better::higher, views::Better::lower);
  for (size_t i = 0; i < all.size(); ++i)
    if (on_front[i]) front.push_back(all[i]);
  std::sort(front.begin(), front.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  const auto same = [](const auto& a, const auto& b) { return a.x == b.x; };  // on the front: equal points
  front.erase(std::unique(front.begin(), front.end(), same), front.end());
  return front;
}

std::vector<ComparedCurve> loss_differences(const std::vector<ComparedRun>& runs) {
  std::vector<ComparedCurve> out;
  for (size_t c = 1; c < runs.size(); ++c) {
    if (!runs.front().training || !runs[c].training) continue;
    ComparedCurve curve{.column = c, .path = {}, .points = {}};
    for (const views::Point& d : step_differences(*runs.front().training, *runs[c].training, "train/loss"))
      if (d.y != 0) curve.path.push_back({d.x, 100 * std::abs(d.y)});
    if (!curve.path.empty()) out.push_back(std::move(curve));
  }
  return out;
}

std::vector<views::Point> cumulative(std::vector<double> values) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  std::sort(values.begin(), values.end());
  std::vector<views::Point> out;
  const double n = static_cast<double>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (i + 1 < values.size() && values[i + 1] == values[i]) continue;
    out.push_back({values[i], static_cast<double>(i + 1) / n});
  }
  return out;
}

std::vector<double> request_values(const formats::BenchPoint& point, views::SweepMetric metric) {
  std::vector<double> out;
  for (const auto& r : point.requests) {
    if (!r.completed()) continue;
    if (metric == views::SweepMetric::ttft) out.push_back(r.first_token_s - r.sent_s);
    if (metric == views::SweepMetric::e2el) out.push_back(r.end_s - r.sent_s);
    if (metric == views::SweepMetric::tpot && r.output_tokens > 1)
      out.push_back((r.end_s - r.first_token_s) / (r.output_tokens - 1));
  }
  return out;
}

const formats::BenchPoint* point_at(const ComparedRun& run, int input_len, const std::string& load) {
  const views::SweepLine* line = line_of(run, input_len);
  if (!line) return nullptr;
  for (const size_t i : line->points)
    if (views::load_text(run.sweep->set.points[i]) == load) return &run.sweep->set.points[i];
  return nullptr;
}

HeatMap heat_map(const std::vector<ComparedRun>& runs, size_t column, views::SweepMetric metric) {
  HeatMap map{.loads = loads_of(runs), .lens = input_lens(runs)};
  for (const views::LoadAxis::Stop& stop : load_axis(runs).stops()) map.labels.push_back(stop.label);
  map.cells.resize(map.loads.size() * map.lens.size());
  const ComparedRun &run = runs[column], &baseline = runs.front();
  for (size_t row = 0; row < map.lens.size(); ++row)
    for (size_t c = 0; c < map.loads.size(); ++c) {
      const auto* point = point_at(run, map.lens[row], map.loads[c]);
      if (!point) continue;
      HeatMap::Cell& cell = map.cells[row * map.loads.size() + c];
      cell.value = views::metric_value(*point, metric, run.sweep->set.usd_per_hour).value;
      if (const auto* other = point_at(baseline, map.lens[row], map.loads[c]); other && column > 0) {
        const double was = views::metric_value(*other, metric, baseline.sweep->set.usd_per_hour).value;
        if (std::isfinite(was) && was != 0) cell.change = cell.value / was - 1;
      }
      const auto index = static_cast<size_t>(point - run.sweep->set.points.data());
      if (const auto* f = views::worst_finding(run.sweep->findings, index, to_string(metric)))
        cell.mark = f->text, cell.verdict = f->verdict;
    }
  return map;
}

std::vector<ServingCost> serving_costs(const std::vector<ComparedRun>& runs, double demand,
                                       const std::vector<double>& once_usd) {
  std::vector<ServingCost> out;
  for (size_t c = 0; c < runs.size(); ++c) {
    const auto* set = set_of(runs[c]);
    if (!set || !std::isfinite(set->usd_per_hour)) continue;
    ServingCost cost{.column = c, .usd_per_hour = set->usd_per_hour};
    double best = 0;
    for (const auto& p : set->points)
      if (std::isfinite(p.output_throughput)) best = std::max(best, p.output_throughput);
    if (best <= 0) continue;
    cost.output_tokens_s = best;
    cost.once_usd = c < once_usd.size() ? once_usd[c] : runs[c].train_usd.value_or(0);
    if (demand > 0) cost.servers = static_cast<int>(std::max(1.0, std::ceil(demand / best)));
    out.push_back(cost);
  }
  return out;
}

std::optional<double> break_even(const ServingCost& a, const ServingCost& b) {
  const double slope = b.usd_per_hour * b.servers - a.usd_per_hour * a.servers;
  if (slope == 0) return std::nullopt;
  const double hours = (a.once_usd - b.once_usd) / slope;
  return hours > 0 ? std::optional(hours) : std::nullopt;
}

}  // namespace mw::compare
