// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/length_chart.h"

#include <algorithm>

#include "ui/charts/chart_types.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kMostBins = 64;
constexpr int kFarBeyond = 3;  // a few much longer rows must not flatten the chart

// The initial range: everything except far outliers.
int upto(const data::LengthStats& stats, int max_len) {
  const int usual = std::max(stats.p99, std::min(max_len, stats.longest));
  int end = stats.longest > kFarBeyond * usual ? usual + usual / 2 : stats.longest;
  if (max_len > end && max_len <= kFarBeyond * end) end = max_len + max_len / 25;
  return end + 1;
}

Histogram::Layer layer_of(const QString& name, int color, const data::LengthBins& bins) {
  return {.name = name,
          .color = theme().series(color),
          .counts = {bins.rows.begin(), bins.rows.end()},
          .beyond = static_cast<double>(bins.beyond)};
}

}  // namespace

LengthChart length_chart(const train::DataIndex& index, const train::DataIndexRequest& request) {
  LengthChart chart;
  if (index.lengths.empty()) return chart;
  const data::LengthStats stats = data::length_stats(index.lengths);
  const int max_len = request.options.max_len, end = upto(stats, max_len);
  const auto longer = index.lengths.upper_bound(max_len);
  const data::LengthBins fit = data::length_bins({index.lengths.begin(), longer}, end, kMostBins);
  const data::LengthBins overlong = data::length_bins({longer, index.lengths.end()}, end, kMostBins);
  chart.range = {0, static_cast<double>(fit.width) * static_cast<double>(fit.rows.size())};
  QStringList words{QObject::tr("mean %1").arg(qs(number_text(stats.mean, stats.mean < 1000 ? 3 : 6))),
                    QObject::tr("p50 %1").arg(grouped(stats.p50)), QObject::tr("p95 %1").arg(grouped(stats.p95)),
                    QObject::tr("p99 %1").arg(grouped(stats.p99)), QObject::tr("max %1").arg(grouped(stats.longest))};
  if (const auto beyond = fit.beyond + overlong.beyond; beyond > 0)
    words << QObject::tr("%1 beyond the chart").arg(grouped(beyond));
  chart.caption = words.join(u" \u00B7 "_s);
  chart.limits = {{QObject::tr("max_len"), static_cast<double>(max_len), theme().bad}};
  const QString longer_name = request.options.overlong == options::Overlong::drop ? QObject::tr("too long, dropped")
                                                                                  : QObject::tr("too long, truncated");
  chart.stack = histogram_stack({.width = static_cast<double>(fit.width),
                                 .layers = {layer_of(QObject::tr("fit"), 0, fit), layer_of(longer_name, 1, overlong)}});
  return chart;
}

}  // namespace mw::ui
