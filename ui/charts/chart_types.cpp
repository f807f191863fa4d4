// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_types.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kDominated = 0.5;  // share of the colour

size_t bin_of(const Histogram& histogram, double x) {
  return std::min(histogram.bins() - 1, static_cast<size_t>(std::max(0.0, x / histogram.width)));
}

}  // namespace

ChartStack histogram_stack(Histogram given) {
  ChartStack stack;
  if (given.bins() == 0) return stack;
  const auto histogram = std::make_shared<const Histogram>(std::move(given));
  stack.shape = Shape::bars;
  stack.bar_width = histogram->width;
  for (const Histogram::Layer& layer : histogram->layers) stack.layers.emplace_back(layer.name, layer.color);
  const auto at = [histogram](size_t bin) {
    std::vector<double> values;
    for (const Histogram::Layer& layer : histogram->layers) values.push_back(layer.counts[bin]);
    return values;
  };
  stack.sample = [histogram](double x0, double x1, int) {
    StackSamples out;
    out.values.resize(histogram->layers.size());
    for (size_t bin = bin_of(*histogram, x0); bin <= bin_of(*histogram, x1); ++bin) {
      out.x.push_back(static_cast<double>(bin) * histogram->width);
      for (size_t l = 0; l < out.values.size(); ++l) out.values[l].push_back(histogram->layers[l].counts[bin]);
    }
    return out;
  };
  stack.at = [histogram, at](double x) { return at(bin_of(*histogram, x)); };
  stack.overall = [histogram] {
    std::vector<double> sums;
    for (const Histogram::Layer& l : histogram->layers)
      sums.push_back(std::accumulate(l.counts.begin(), l.counts.end(), l.beyond));
    return sums;
  };
  stack.highest = [histogram, at](double x0, double x1) {
    double most = 0;
    for (size_t bin = bin_of(*histogram, x0); bin <= bin_of(*histogram, x1); ++bin) {
      const auto values = at(bin);
      most = std::max(most, std::accumulate(values.begin(), values.end(), 0.0));
    }
    return most;
  };
  return stack;
}

ChartStack bar_stack(const ChartBars& given) {
  ChartStack stack;
  if (given.bars.empty()) return stack;
  const auto all = std::make_shared<const ChartBars>(given);
  const auto nearest = [all](double x) -> const ChartBar& {
    return all->bars[static_cast<size_t>(std::clamp<long>(std::lround(x), 0, std::ssize(all->bars) - 1))];
  };
  stack.shape = Shape::bars;
  stack.layers = all->layers;
  stack.sample = [all](double x0, double x1, int) {
    StackSamples out;
    out.values.resize(all->layers.size());
    for (size_t i = 0; i < all->bars.size(); ++i) {
      const auto x = static_cast<double>(i);
      if (x < x0 || x > x1) continue;
      out.x.push_back(x);
      out.start.push_back(all->bars[i].start);
      for (size_t l = 0; l < out.values.size(); ++l) out.values[l].push_back(all->bars[i].values[l]);
    }
    return out;
  };
  stack.at = [nearest](double x) { return nearest(x).values; };
  stack.overall = [all] { return all->overall.empty() ? all->bars.front().values : all->overall; };
  stack.origin = [nearest](double x) { return nearest(x).origin; };
  stack.highest = [all](double, double) {
    double most = all->least_end;
    for (const ChartBar& bar : all->bars)
      most = std::max(most, std::accumulate(bar.values.begin(), bar.values.end(), bar.start));
    return most;
  };
  return stack;
}

// A gap after each point prevents a connecting line.
std::vector<ChartLine> pareto_lines(const ParetoPoints& given) {
  std::vector<size_t> order(given.points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return given.points[a].x < given.points[b].x; });
  auto front = std::make_shared<views::Series>(), dominated = std::make_shared<views::Series>();
  for (const size_t i : order) {
    views::Series& series = given.front[i] ? *front : *dominated;
    series.append(given.points[i].x, given.points[i].y);
    series.append(given.points[i].x, std::nan(""));
  }
  return {
      {.name = given.name,
       .color = mix(theme().panel, given.color, kDominated),
       .raw = dominated,
       .origin = given.origin,
       .marks = Marks::points},
      {.name = given.front_name, .color = given.color, .raw = front, .origin = given.origin, .marks = Marks::squares}};
}

}  // namespace mw::ui
