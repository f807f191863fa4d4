// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/data_charts.h"

#include <algorithm>

#include "ui/charts/chart_types.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr QSize kLeastEconomy(300, 208);  // four bars with axis titles; pixels

QString explanation(views::PadTo pad_to) {
  return pad_to == views::PadTo::longest
             ? EconomyView::tr("This engine pads each batch to its longest row")
             : EconomyView::tr(
                   "Programs that are compiled for a fixed shape, as on TPUs, pad every row to data.max_len");
}

ChartBar economy_bar(const views::DataEconomy& economy, views::PadTo pad_to, data::Packing packing) {
  const bool longest = pad_to == views::PadTo::longest, packed = packing == data::Packing::pack;
  const views::PaddedShares shares = shares_of(packed ? economy.packed : economy.plain, pad_to);
  ChartBar bar{.name = longest ? EconomyView::tr("longest row") : EconomyView::tr("max_len"),
               .origin = LineOrigin::measured,
               .text = qs(count_text(static_cast<double>(shares.padded))),
               .tip = explanation(pad_to)};
  if (packed) {
    bar.name = EconomyView::tr("%1, packed").arg(bar.name);
    bar.text += u" (%1\u00D7)"_s.arg(packing_factor(economy, pad_to), 0, 'f', 2);
  }
  if (economy.loss_known) bar.values.push_back(100 * shares.loss);
  bar.values.push_back(100 * (economy.loss_known ? shares.real - shares.loss : shares.real));
  bar.values.push_back(100 * shares.padding);
  return bar;
}

ChartBars economy_bars(const views::DataEconomy& economy, data::Packing in_force) {
  const Theme& t = theme();
  ChartBars all{.text_title = EconomyView::tr("Tokens (packing)")};
  if (economy.loss_known) all.layers.emplace_back(EconomyView::tr("with loss"), t.series(0));
  all.layers.emplace_back(economy.loss_known ? EconomyView::tr("without loss") : EconomyView::tr("tokens"),
                          mix(t.panel, t.series(0), 0.50));
  all.layers.emplace_back(EconomyView::tr("padding"), mix(t.panel, t.text, 0.28));
  for (const auto pad_to : {views::PadTo::longest, views::PadTo::max_len})
    for (const auto packing : {data::Packing::none, data::Packing::pack}) {
      all.bars.push_back(economy_bar(economy, pad_to, packing));
      all.bars.back().is_strong = pad_to == views::PadTo::longest && packing == in_force;
      if (all.bars.back().is_strong) all.overall = all.bars.back().values;
    }
  return all;
}

QString cost_words(const views::TokenCost& cost) {
  QString text = qs(to_text(*cost.seconds));
  if (cost.usd) text += u", "_s + qs(to_text(*cost.usd));
  return text;
}

}  // namespace

EconomyView::EconomyView(QWidget* parent)
    : QWidget(parent),
      chart_(new Chart({.title = tr("Token economy"),
                        .unit = tr("share of tokens"),
                        .quantity = AxisQuantity::percent,
                        .rows = true},
                       link_, this)) {
  link_.set_x(tr("padded to"), AxisQuantity::count);
  setMinimumSize(kLeastEconomy);
  flush_layout<QVBoxLayout>(this)->addWidget(chart_);
}

void EconomyView::show_economy(std::optional<views::DataEconomy> economy, data::Packing in_force) {
  economy_ = std::move(economy);
  in_force_ = in_force;
  chart_->set_bars(economy_ ? economy_bars(*economy_, in_force_) : ChartBars());
  show_cost();
}

void EconomyView::set_price(const views::TokenPrice& price, views::PadTo pad_to) {
  price_ = price;
  priced_ = pad_to;
  show_cost();
}

void EconomyView::show_cost() {
  if (!economy_ || !price_.per_padded_token) return chart_->set_notes({}, {});
  const views::EpochCost cost = epoch_cost(*economy_, priced_, price_);
  chart_->set_notes(
      {},
      tr("Predicted padding of an epoch %1; packing saves %2").arg(cost_words(cost.padding), cost_words(cost.saved)));
}

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

#include "moc_data_charts.cpp"
