// SPDX-License-Identifier: GPL-3.0-or-later
// Charts of rows: horizontal bars, one below the other. The axis of positions goes down, that of values to the right.
// The names of the rows and the texts behind the bars are painted, because labels of Qt Charts have one font, and it
// hides those of low rows.
#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ui/charts/chart.h"
#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kMostNames = 0.42;  // share of the width
constexpr double kValueTick = 64;    // pixels per label
constexpr double kBeside = 8;        // pixels between the data and the texts beside it

QFont name_font(const ChartBar& bar) {
  return bar.is_strong || !bar.detail.isEmpty() ? demi_bold(small_font()) : small_font();
}

double name_width(const ChartBar& bar) {
  const double detail = bar.detail.isEmpty() ? 0 : kBeside + QFontMetricsF(small_font()).horizontalAdvance(bar.detail);
  return QFontMetricsF(name_font(bar)).horizontalAdvance(bar.name) + detail;
}

}  // namespace

double Chart::row_y(const QRectF& area, double row) const {
  return area.top() + (row - link_.range().low) / link_.range().size() * area.height();
}

double Chart::value_x(const QRectF& area, double value) const {
  return area.left() + (value - y_.low) / y_.size() * area.width();
}

void Chart::add_row_axes(const QRectF& area, SceneItems& out) const {
  const Span rows = link_.range();
  const double air = kAir * y_.size() / area.width();
  out.x = {{y_.low - air, y_.high + air},
           ticks(y_, std::max(2, static_cast<int>(area.width() / kValueTick)), options_.quantity, Scale::linear)};
  std::erase_if(out.x.ticks, [this](const Tick& tick) { return tick.value < y_.low || tick.value > y_.high; });
  out.y.range = {-rows.high, -rows.low};
  if (height() >= kTitledHeight) out.x.title = capitalized(options_.unit.isEmpty() ? options_.title : options_.unit);
}

void Chart::fit_row_margins() {
  double names = 0, texts = 0;
  for (const ChartBar& bar : bars_.bars) {
    names = std::max(names, name_width(bar));
    texts = std::max(texts, QFontMetricsF(small_font()).horizontalAdvance(bar.text));
  }
  const double title = link_.x_name().isEmpty() ? 0 : QFontMetricsF(small_font()).height() + 6;
  left_margin_ = std::ceil(kBeside + kAir + title + (names > 0 ? std::min(names, kMostNames * width()) + 4 : 0));
  right_margin_ = std::ceil(std::max(kRight, texts + kBeside + kAir));
}

void Chart::paint_row_name(QPainter& painter, const QRectF& room, const ChartBar& bar) const {
  const QFont font = name_font(bar);
  const QFontMetricsF metrics(font);
  const QString name = metrics.elidedText(bar.name, Qt::ElideMiddle, room.width());
  const double taken = metrics.horizontalAdvance(name) + kBeside;
  const QString detail = QFontMetricsF(small_font()).elidedText(bar.detail, Qt::ElideRight, room.width() - taken);
  const double rest = detail.isEmpty() ? 0 : kBeside + QFontMetricsF(small_font()).horizontalAdvance(detail);
  painter.setFont(font);
  painter.setPen(theme().text);
  painter.drawText(room.adjusted(0, 0, -rest, 0), Qt::AlignRight | Qt::AlignVCenter, name);
  painter.setFont(small_font());
  painter.setPen(theme().muted);
  painter.drawText(room, Qt::AlignRight | Qt::AlignVCenter, detail);
}

void Chart::paint_rows(QPainter& painter, const QRectF& area) const {
  const Theme& t = theme();
  const double half = std::max(9.0, area.height() / link_.range().size() / 2);
  const double title = link_.x_name().isEmpty() ? 0 : QFontMetricsF(small_font()).height() + 6;
  for (size_t i = 0; i < bars_.bars.size(); ++i) {
    const ChartBar& bar = bars_.bars[i];
    const double middle = row_y(area, static_cast<double>(i)), left = 6 + title;
    paint_row_name(painter, QRectF(left, middle - half, area.left() - kAir - 4 - left, 2 * half), bar);
    double end = bar.start;
    for (size_t l = 0; l < bar.values.size(); ++l)
      if (!hidden(bars_.layers[l].first)) end += bar.values[l];
    painter.setPen(bars_.is_outdated ? t.faint : t.text);
    painter.drawText(QRectF(value_x(area, end) + 5, middle - half, width(), 2 * half), Qt::AlignVCenter, bar.text);
  }
  const QFontMetricsF metrics(small_font());
  for (const LevelLine& level : levels_) {
    const QString text = level_text(level);
    const double w = metrics.horizontalAdvance(text), x = value_x(area, std::min(level.value, y_.high));
    painter.setPen(level.color);
    painter.drawText(
        QRectF(std::clamp(x - w / 2, 4.0, std::max(4.0, width() - w - 4)), area.top() - kCaption, w + 2, kCaption),
        Qt::AlignVCenter, text);
  }
  const QString name = capitalized(link_.x_name());
  if (metrics.horizontalAdvance(name) > area.height()) return;
  painter.save();
  painter.setPen(t.muted);
  painter.translate(6, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-area.height() / 2, 0, area.height(), title), Qt::AlignHCenter | Qt::AlignTop, name);
  painter.restore();
}

void Chart::paint_row_cursor(QPainter& painter, const QRectF& area) const {
  const auto row = [&](double at) {
    const double half = area.height() / link_.range().size() / 2;
    return QRectF(area.left() - kAir, row_y(area, at) - half, area.width() + 2 * kAir, 2 * half);
  };
  if (const auto head = link_.playhead()) painter.fillRect(row(*head), faded(theme().accent, 0.14));
  if (const auto cursor = link_.cursor()) painter.fillRect(row(*cursor), faded(theme().text, 0.07));
}

QString Chart::row_tip(QPointF at) const {
  if (!options_.rows || empty() || !area().adjusted(-left_margin_, 0, right_margin_, 0).contains(at)) return {};
  const auto row =
      static_cast<size_t>(std::clamp<double>(std::round(x_at(at)), 0, static_cast<double>(bars_.bars.size()) - 1));
  return bars_.bars[row].tip;
}

QStringList Chart::row_summaries() const {
  QStringList rows;
  for (const ChartBar& bar : bars_.bars) {
    QStringList parts;
    for (size_t l = 0; l < bar.values.size(); ++l)
      if (bar.values[l] > 0)
        parts << QString(bars_.layers[l].first + u' ' + value_text(bar.values[l], options_.quantity));
    if (!bar.text.isEmpty()) parts << bar.text;
    const QString name = bar.detail.isEmpty() ? bar.name : QString(bar.name + u' ' + bar.detail);
    rows << (name.isEmpty() ? parts.join(u", "_s) : QString(name + u": "_s + parts.join(u", "_s)));
  }
  return rows.isEmpty() ? rows : QStringList{rows.join(u"; "_s)};
}

void Chart::press_row_key(QKeyEvent* event) {
  const auto head = link_.playhead();
  switch (event->key()) {
    case Qt::Key_Up:
      return link_.set_playhead(head ? link_.x_beside(*head, -1) : link_.data().low);
    case Qt::Key_Down:
      return link_.set_playhead(head ? link_.x_beside(*head, 1) : link_.data().low);
    case Qt::Key_Home:
      return link_.set_playhead(link_.data().low);
    case Qt::Key_End:
      return link_.set_playhead(link_.data().high);
    case Qt::Key_Escape:
      return link_.set_playhead(std::nullopt);
    default:
      QWidget::keyPressEvent(event);
  }
}

}  // namespace mw::ui
