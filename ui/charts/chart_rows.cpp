// SPDX-License-Identifier: GPL-3.0-or-later
// Charts of rows: horizontal bars, one below the other. The axis of positions goes down, that of values to the right.
// The names of the rows and the texts behind the bars are painted, because labels of Qt Charts have one font, and it
// hides those of low rows.
#include <algorithm>
#include <cmath>

#include "ui/charts/chart_paint.h"
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

void paint_row_name(QPainter& painter, const QRectF& room, const ChartBar& bar) {
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

}  // namespace

void ChartAxes::fit_row_margins() {
  double names = 0, texts = 0;
  for (const ChartBar& bar : content.bars.bars) {
    names = std::max(names, name_width(bar));
    texts = std::max(texts, QFontMetricsF(small_font()).horizontalAdvance(bar.text));
  }
  const double title = link.x_name().isEmpty() ? 0 : QFontMetricsF(small_font()).height() + 6;
  left_margin_ = std::ceil(kBeside + kAir + title + (names > 0 ? std::min(names, kMostNames * size.width()) + 4 : 0));
  right_margin_ = std::ceil(std::max(kRight, texts + kBeside + kAir));
}

void add_row_axes(const ChartAxes& axes, const QRectF& area, SceneItems& out) {
  const AxisRange rows = axes.link.range();
  const double air = ChartAxes::kAir * axes.y().size() / area.width();
  out.x = {{axes.y().low - air, axes.y().high + air},
           ticks(axes.y(), std::max(2, static_cast<int>(area.width() / kValueTick)), axes.content.options.quantity,
                 Scale::linear)};
  std::erase_if(out.x.ticks, [y = axes.y()](const Tick& tick) { return tick.value < y.low || tick.value > y.high; });
  out.y.range = {-rows.high, -rows.low};
  if (axes.size.height() >= kTitledHeight)
    out.x.title =
        capitalized(axes.content.options.unit.isEmpty() ? axes.content.options.title : axes.content.options.unit);
}

void paint_rows(QPainter& painter, const ChartAxes& axes, const QRectF& area) {
  const Theme& t = theme();
  const double half = std::max(9.0, area.height() / axes.link.range().size() / 2);
  const double title = axes.link.x_name().isEmpty() ? 0 : QFontMetricsF(small_font()).height() + 6;
  for (size_t i = 0; i < axes.content.bars.bars.size(); ++i) {
    const ChartBar& bar = axes.content.bars.bars[i];
    const double middle = axes.row_y(area, static_cast<double>(i)), left = 6 + title;
    paint_row_name(painter, QRectF(left, middle - half, area.left() - ChartAxes::kAir - 4 - left, 2 * half), bar);
    double end = bar.start;
    for (size_t l = 0; l < bar.values.size(); ++l)
      if (!axes.content.is_hidden(axes.content.bars.layers[l].first)) end += bar.values[l];
    painter.setPen(axes.content.bars.is_outdated ? t.faint : t.text);
    painter.drawText(QRectF(axes.value_x(area, end) + 5, middle - half, axes.size.width(), 2 * half), Qt::AlignVCenter,
                     bar.text);
  }
  const QFontMetricsF metrics(small_font());
  for (const LevelLine& level : axes.content.levels) {
    const QString text = level_text(axes, level);
    const double w = metrics.horizontalAdvance(text), x = axes.value_x(area, std::min(level.value, axes.y().high));
    painter.setPen(level.color);
    painter.drawText(QRectF(std::clamp(x - w / 2, 4.0, std::max(4.0, axes.size.width() - w - 4)),
                            area.top() - ChartAxes::kCaption, w + 2, ChartAxes::kCaption),
                     Qt::AlignVCenter, text);
  }
  const QString name = capitalized(axes.link.x_name());
  if (metrics.horizontalAdvance(name) > area.height()) return;
  painter.save();
  painter.setPen(t.muted);
  painter.translate(6, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-area.height() / 2, 0, area.height(), title), Qt::AlignHCenter | Qt::AlignTop, name);
  painter.restore();
}

void paint_row_cursor(QPainter& painter, const ChartAxes& axes, const QRectF& area) {
  const auto row = [&](double at) {
    const double half = area.height() / axes.link.range().size() / 2;
    return QRectF(area.left() - ChartAxes::kAir, axes.row_y(area, at) - half, area.width() + 2 * ChartAxes::kAir,
                  2 * half);
  };
  if (const auto head = axes.link.playhead()) painter.fillRect(row(*head), faded(theme().accent, 0.14));
  if (const auto cursor = axes.link.cursor()) painter.fillRect(row(*cursor), faded(theme().text, 0.07));
}

QString row_tip(const ChartAxes& axes, QPointF at) {
  if (!axes.content.options.rows || axes.content.empty() ||
      !axes.area().adjusted(-axes.left_margin(), 0, axes.right_margin(), 0).contains(at))
    return {};
  const auto row = static_cast<size_t>(
      std::clamp<double>(std::round(axes.x_at(at)), 0, static_cast<double>(axes.content.bars.bars.size()) - 1));
  return axes.content.bars.bars[row].tip;
}

QStringList row_summaries(const ChartAxes& axes) {
  QStringList rows;
  for (const ChartBar& bar : axes.content.bars.bars) {
    QStringList parts;
    for (size_t l = 0; l < bar.values.size(); ++l)
      if (bar.values[l] > 0)
        parts << QString(axes.content.bars.layers[l].first + u' ' +
                         value_text(bar.values[l], axes.content.options.quantity));
    if (!bar.text.isEmpty()) parts << bar.text;
    const QString name = bar.detail.isEmpty() ? bar.name : QString(bar.name + u' ' + bar.detail);
    rows << (name.isEmpty() ? parts.join(u", "_s) : QString(name + u": "_s + parts.join(u", "_s)));
  }
  return rows.isEmpty() ? rows : QStringList{rows.join(u"; "_s)};
}

}  // namespace mw::ui
