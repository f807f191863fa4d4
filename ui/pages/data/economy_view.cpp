// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/economy_view.h"

#include <QPainter>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kEconomyHeader = 24, kEconomyMargin = 10;
constexpr double kText = 16, kThinnest = 7, kThickest = 22, kAir = 3;  // heights of texts and bars

QString percent(double share) {
  const double p = 100 * share;
  return u"%1 %"_s.arg(p, 0, 'f', p > 0 && p < 0.95 ? 1 : 0);
}

}  // namespace

EconomyView::EconomyView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Token economy"));
  setToolTip(
      tr("Share of tokens without padding, tokens with loss and padding in the first epoch. This engine pads each "
         "batch to its "
         "longest row;\nprograms compiled for a fixed shape, as on TPUs, pad every row to data.max_len."));
}

void EconomyView::show_economy(std::optional<views::DataEconomy> economy, data::Packing in_force) {
  economy_ = std::move(economy);
  in_force_ = in_force;
  setAccessibleDescription(summary());
  update();
}

void EconomyView::set_price(const views::TokenPrice& price, views::PadTo pad_to) {
  price_ = price;
  priced_ = pad_to;
  setAccessibleDescription(summary());
  update();
}

void EconomyView::set_empty_text(const QString& text) {
  empty_ = text;
  update();
}

std::vector<EconomyView::Group> EconomyView::groups() const {
  std::vector<Group> out;
  if (!economy_) return out;
  for (const auto pad_to : {views::PadTo::longest, views::PadTo::max_len}) {
    const bool longest = pad_to == views::PadTo::longest;
    const QString factor = QString::number(packing_factor(*economy_, pad_to), 'f', 2);
    Group group{longest ? tr("Batches padded to their longest row") : tr("Rows padded to max_len (fixed shapes)"),
                tr("packing %1\u00D7").arg(factor),
                {}};
    group.bars.push_back(
        {tr("row by row"), shares_of(economy_->plain, pad_to), longest && in_force_ == data::Packing::none});
    group.bars.push_back(
        {tr("packed"), shares_of(economy_->packed, pad_to), longest && in_force_ == data::Packing::pack});
    out.push_back(std::move(group));
  }
  return out;
}

std::vector<std::pair<QString, QString>> EconomyView::costs() const {
  if (!economy_ || !price_.per_padded_token) return {};
  const auto words = [](const views::TokenCost& cost) {
    QString text = qs(to_text(*cost.seconds));
    if (cost.usd) text += u", "_s + qs(to_text(*cost.usd));
    return text;
  };
  const views::EpochCost cost = epoch_cost(*economy_, priced_, price_);
  return {{tr("Predicted padding of an epoch"), words(cost.padding)}, {tr("Packing saves"), words(cost.saved)}};
}

QString EconomyView::cost_text() const {
  QStringList parts;
  for (const auto& [what, cost] : costs()) parts << what + u' ' + cost;
  return parts.join(u"; "_s);
}

QString EconomyView::summary() const {
  if (!economy_) return empty_;
  QStringList parts;
  for (const Group& group : groups()) {
    for (const Bar& bar : group.bars) {
      QString text = tr("%1, %2: real %3, padding %4")
                         .arg(group.title, bar.name, percent(bar.shares.real), percent(bar.shares.padding));
      if (economy_->loss_known) text += tr(", loss %1").arg(percent(bar.shares.loss));
      parts << text;
    }
    parts << group.factor;
  }
  if (const QString cost = cost_text(); !cost.isEmpty()) parts << cost;
  return parts.join(u"; "_s);
}

void EconomyView::paint_bar(QPainter& painter, const QRectF& where, const views::PaddedShares& shares) const {
  const Theme& t = theme();
  const QColor real = t.series(0);
  const double loss = where.width() * shares.loss, all = where.width() * shares.real;
  painter.fillRect(where, mix(t.panel, t.text, 0.10));
  painter.fillRect(where, QBrush(mix(t.panel, t.text, 0.28), Qt::BDiagPattern));
  painter.fillRect(QRectF(where.left(), where.top(), all, where.height()), mix(t.panel, real, 0.50));
  painter.fillRect(QRectF(where.left(), where.top(), loss, where.height()), real);
}

void EconomyView::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(t.line);
  painter.setBrush(t.panel);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
  painter.setFont(demi_bold(small_font()));
  painter.setPen(t.text);
  painter.drawText(QPointF(kEconomyMargin, 17), tr("Token economy"));
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  const auto all = groups();
  if (all.empty()) {
    painter.setPen(t.faint);
    painter.drawText(rect().adjusted(16, 20, -16, -8), Qt::AlignCenter | Qt::TextWordWrap, empty_);
    return;
  }
  QStringList heads{tr("real"), tr("padding")};
  if (economy_->loss_known) heads << tr("loss");
  heads << tr("tokens");
  const double column = metrics.horizontalAdvance(tr("padding")) + 12, right = width() - kEconomyMargin;
  const auto cells = [&](double y, const QStringList& texts) {
    for (qsizetype c = 0; c < texts.size(); ++c)
      painter.drawText(QRectF(right - column * static_cast<double>(texts.size() - c), y, column, kText),
                       Qt::AlignRight | Qt::AlignVCenter, texts[c]);
  };
  painter.setPen(t.muted);
  cells(5, heads);
  const auto cost = costs();
  const double words = kText * (6 + static_cast<double>(cost.size()));
  const double thick = std::clamp((height() - kEconomyHeader - words - 6) / 4 - kAir, kThinnest, kThickest);
  double y = kEconomyHeader;
  const auto line = [&](const QString& text, const QString& end) {
    const double taken = end.isEmpty() ? 0 : metrics.horizontalAdvance(end) + 8;
    const QRectF where(kEconomyMargin, y, right - kEconomyMargin, kText);
    painter.drawText(where.adjusted(0, 0, -taken, 0), Qt::AlignVCenter,
                     metrics.elidedText(text, Qt::ElideRight, where.width() - taken));
    painter.drawText(where, Qt::AlignVCenter | Qt::AlignRight, end);
    y += kText;
  };
  for (const Group& group : all) {
    painter.setFont(small_font());
    painter.setPen(t.muted);
    line(group.title, group.factor);
    painter.setPen(t.text);
    for (const Bar& bar : group.bars) {
      painter.setFont(bar.in_force ? demi_bold(small_font()) : small_font());
      painter.drawText(QRectF(kEconomyMargin + 6, y, width(), kText), Qt::AlignVCenter, bar.name);
      QStringList values{percent(bar.shares.real), percent(bar.shares.padding)};
      if (economy_->loss_known) values << percent(bar.shares.loss);
      cells(y, values << qs(count_text(static_cast<double>(bar.shares.padded))));
      y += kText;
      paint_bar(painter, QRectF(kEconomyMargin + 6, y, right - kEconomyMargin - 6, thick), bar.shares);
      y += thick + kAir;
    }
  }
  painter.setFont(small_font());
  for (const auto& [what, text] : cost) line(what, text);
}

}  // namespace mw::ui
