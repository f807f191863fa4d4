// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/length_chart.h"

#include <QObject>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kMostBins = 64;
constexpr int kFarBeyond = 3;  // a few much longer rows must not flatten the chart

struct Bars {
  std::array<data::LengthBins, 2> layers;  // rows that fit and longer ones
  double sum(size_t layer) const {
    const data::LengthBins& b = layers[layer];
    std::int64_t all = b.beyond;
    for (const std::int64_t rows : b.rows) all += rows;
    return static_cast<double>(all);
  }
  double value(size_t layer, size_t bin) const { return static_cast<double>(layers[layer].rows[bin]); }
  size_t bins() const { return layers[0].rows.size(); }
  double width() const { return layers[0].width; }
};

// The initial range: everything except far outliers.
int upto(const data::LengthStats& stats, int max_len) {
  const int usual = std::max(stats.p99, std::min(max_len, stats.longest));
  int end = stats.longest > kFarBeyond * usual ? usual + usual / 2 : stats.longest;
  if (max_len > end && max_len <= kFarBeyond * end) end = max_len + max_len / 25;
  return end + 1;
}

ChartStack stack_of(std::shared_ptr<const Bars> bars, data::Overlong overlong) {
  ChartStack stack;
  stack.shape = Shape::bars;
  stack.bar_width = bars->width();
  stack.layers = {
      {QObject::tr("fit"), theme().series(0)},
      {overlong == data::Overlong::drop ? QObject::tr("too long, dropped") : QObject::tr("too long, truncated"),
       theme().series(1)}};
  stack.sample = [bars](double x0, double x1, int) {
    Stack out;
    out.values.resize(2);
    for (size_t b = 0; b < bars->bins(); ++b) {
      const double left = static_cast<double>(b) * bars->width();
      if (left + bars->width() < x0 || left > x1) continue;
      out.x.push_back(left);
      for (const size_t layer : {0u, 1u}) out.values[layer].push_back(bars->value(layer, b));
    }
    return out;
  };
  stack.at = [bars](double x) {
    const auto bin = std::min(bars->bins() - 1, static_cast<size_t>(std::max(0.0, x / bars->width())));
    return std::vector<double>{bars->value(0, bin), bars->value(1, bin)};
  };
  stack.overall = [bars] { return std::vector<double>{bars->sum(0), bars->sum(1)}; };
  stack.highest = [bars](double x0, double x1) {
    double most = 0;
    for (size_t b = 0; b < bars->bins(); ++b) {
      const double left = static_cast<double>(b) * bars->width();
      if (left + bars->width() >= x0 && left <= x1) most = std::max(most, bars->value(0, b) + bars->value(1, b));
    }
    return most;
  };
  return stack;
}

}  // namespace

LengthChart length_chart(const planning::DataIndex& index, const planning::DataIndexRequest& request) {
  LengthChart chart;
  if (index.lengths.empty()) return chart;
  const data::LengthStats stats = data::length_stats(index.lengths);
  const int max_len = request.options.max_len, end = upto(stats, max_len);
  const auto longer = index.lengths.upper_bound(max_len);
  auto bars = std::make_shared<Bars>();
  bars->layers[0] = data::length_bins({index.lengths.begin(), longer}, end, kMostBins);
  bars->layers[1] = data::length_bins({longer, index.lengths.end()}, end, kMostBins);
  chart.range = {0, bars->width() * static_cast<double>(bars->bins())};
  QStringList words{QObject::tr("mean %1").arg(qs(number_text(stats.mean, stats.mean < 1000 ? 3 : 6))),
                    QObject::tr("p50 %1").arg(grouped(stats.p50)), QObject::tr("p95 %1").arg(grouped(stats.p95)),
                    QObject::tr("p99 %1").arg(grouped(stats.p99)), QObject::tr("max %1").arg(grouped(stats.longest))};
  if (const auto beyond = bars->layers[0].beyond + bars->layers[1].beyond; beyond > 0)
    words << QObject::tr("%1 beyond the chart").arg(grouped(beyond));
  chart.caption = words.join(u" \u00B7 "_s);
  chart.limits = {{QObject::tr("max_len"), static_cast<double>(max_len), theme().bad}};
  chart.stack = stack_of(std::move(bars), request.options.overlong);
  return chart;
}

}  // namespace mw::ui
