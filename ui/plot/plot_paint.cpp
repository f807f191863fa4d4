// SPDX-License-Identifier: GPL-3.0-or-later
// Painting of a Plot. Dense polylines use a one-pixel pen, because wide antialiased ones take twenty times as long.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/plot/plot.h"
#include "ui/plot/plot_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// Draws the segments between gaps.
void polyline(QPainter& painter, const QPolygonF& points) {
  QPolygonF part;
  for (const QPointF& p : points) {
    if (std::isfinite(p.y())) {
      part << p;
      continue;
    }
    if (part.size() > 1) painter.drawPolyline(part);
    part.clear();
  }
  if (part.size() > 1) painter.drawPolyline(part);
}

}  // namespace

void Plot::paint_data(QPainter& painter, const QRectF& area) const {
  if (empty()) {
    painter.setPen(theme().faint);
    painter.setFont(small_font());
    painter.drawText(area.adjusted(8, 0, -8, 0), Qt::AlignCenter | Qt::TextWordWrap, options_.empty);
    return;
  }
  paint_axes(painter, area);
  painter.save();
  painter.setClipRect(area.adjusted(0, -1, 1, 1));
  if (stack_.sample && stack_.shape == Shape::areas) paint_stack(painter, area);
  if (stack_.sample && stack_.shape == Shape::bars) paint_bars(painter, area);
  painter.setRenderHint(QPainter::Antialiasing);
  for (const PlotLine& line : lines_)
    if (line.low && line.high && !hidden(line.name)) paint_interval(painter, area, line);
  for (const PlotLine& line : lines_)
    if (line.raw && !hidden(line.name) && line.smooth) paint_band(painter, area, line);
  for (const PlotLine& line : lines_)
    if (line.raw && !hidden(line.name)) paint_line(painter, area, line);
  painter.setClipping(false);  // does not clip marks at the edge
  for (const PlotLine& line : lines_)
    if (line.raw && !hidden(line.name)) paint_marks(painter, area, line);
  for (const PlotLine& line : lines_)
    if (!hidden(line.name)) paint_flags(painter, area, line);
  painter.restore();
  paint_levels(painter, area);
  paint_limits(painter, area);
  paint_notes(painter, area);
}

void Plot::paint_axes(QPainter& painter, const QRectF& area) const {
  const Theme& t = theme();
  painter.setFont(small_font());
  const QColor grid = mix(t.panel, t.line, t.shade == Shade::dark ? 0.6 : 0.65);
  const int rows = std::max(2, static_cast<int>(area.height() / 30));
  for (const Tick& tick : ticks(y_, rows, options_.quantity, scale_)) {
    const double y = std::round(to_y(area, tick.value)) + 0.5;
    if (y < area.top() - 1 || y > area.bottom() + 1) continue;
    painter.setPen(grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(t.muted);
    painter.drawText(QRectF(0, y - 9, area.left() - 6, 18), Qt::AlignRight | Qt::AlignVCenter, tick.label);
  }
  const int columns = std::max(2, static_cast<int>(area.width() / 78));
  const QFontMetricsF metrics(small_font());
  const auto places =
      link_.stops().empty() ? ticks(link_.range(), columns, link_.x_quantity(), Scale::linear) : link_.stops();
  double taken = -1;  // end of the last label
  for (const Tick& tick : places) {
    const double x = std::round(to_x(area, tick.value)) + 0.5;
    if (x < area.left() - 1 || x > area.right() + 1) continue;
    painter.setPen(grid);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    painter.setPen(t.muted);
    const double w = metrics.horizontalAdvance(tick.label);
    const double left = std::clamp(x - w / 2, 2.0, std::max(2.0, width() - w - 3));
    if (left < taken) continue;
    taken = left + w + 4;
    painter.drawText(QRectF(left, area.bottom() + 2, w + 2, 16), Qt::AlignLeft | Qt::AlignVCenter, tick.label);
  }
}

void Plot::paint_band(QPainter& painter, const QRectF& area, const PlotLine& line) const {
  const views::Series& raw = *line.raw;
  const Span x = link_.range();
  const int columns = static_cast<int>(area.width());
  const auto [begin, end] = raw.window(x.low, x.high);
  const double alpha = theme().shade == Shade::dark ? 0.30 : 0.26;
  if (end - begin < static_cast<size_t>(columns)) {  // fewer samples than pixels: draws every sample
    QPolygonF points;
    for (const auto& p : raw.decimate(x.low, x.high, columns)) points << QPointF(to_x(area, p.x), to_y(area, p.y));
    painter.setPen(QPen(faded(line.color, alpha + 0.15), 1));
    polyline(painter, points);
    return;
  }
  QPolygonF upper, lower;
  const double dx = x.size() / columns;
  for (int c = 0; c < columns; ++c) {
    const auto range = raw.y_range(x.low + c * dx, x.low + (c + 1) * dx);
    if (!range) continue;
    upper << QPointF(area.left() + c + 0.5, to_y(area, range->max) - 0.5);
    lower << QPointF(area.left() + c + 0.5, to_y(area, range->min) + 0.5);
  }
  std::reverse(lower.begin(), lower.end());
  painter.setPen(Qt::NoPen);
  painter.setBrush(faded(line.color, alpha));
  painter.drawPolygon(upper + lower);
}

QColor Plot::color_of(const PlotLine& line) const {
  return emphasis_ < 0 || line.group == emphasis_ ? line.color : faded(line.color, 0.22);
}

void Plot::paint_interval(QPainter& painter, const QRectF& area, const PlotLine& line) const {
  QPolygonF upper, lower;
  for (size_t i = 0; i < line.high->size() && i < line.low->size(); ++i) {
    const views::Point top = (*line.high)[i], bottom = (*line.low)[i];
    if (std::isnan(top.y) || std::isnan(bottom.y)) continue;
    upper << QPointF(to_x(area, top.x), to_y(area, top.y));
    lower << QPointF(to_x(area, bottom.x), to_y(area, bottom.y));
  }
  const double alpha = (theme().shade == Shade::dark ? 0.20 : 0.15) * (color_of(line).alphaF());
  if (upper.size() == 1) {  // a whisker
    painter.setPen(QPen(faded(line.color, alpha * 3), 3));
    painter.drawLine(upper.front(), lower.front());
    return;
  }
  std::reverse(lower.begin(), lower.end());
  painter.setPen(Qt::NoPen);
  painter.setBrush(faded(line.color, alpha));
  painter.drawPolygon(upper + lower);
}

void Plot::paint_flags(QPainter& painter, const QRectF& area, const PlotLine& line) const {
  painter.setFont(small_font());
  for (const PlotFlag& flag : line.flags) {
    const QPointF at(to_x(area, flag.x), to_y(area, flag.y));
    if (!area.adjusted(-1, -1, 1, 1).contains(at)) continue;
    painter.setPen(QPen(flag.color, 1.8));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(at, 6.5, 6.5);
    painter.drawText(QRectF(at.x() + 5, at.y() - 17, 10, 14), Qt::AlignCenter, u"!"_s);
  }
}

void Plot::paint_line(QPainter& painter, const QRectF& area, const PlotLine& line) const {
  const views::Series& series = line.smooth ? *line.smooth : *line.raw;
  const Span x = link_.range();
  const int columns = std::max(2, static_cast<int>(area.width()) / (line.smooth ? 3 : 2));
  const auto points = series.decimate(x.low, x.high, columns);
  QPolygonF polygon;
  polygon.reserve(static_cast<qsizetype>(points.size()));
  for (const auto& p : line.path.empty() ? points : line.path)
    polygon << QPointF(to_x(area, p.x), std::isnan(p.y) ? std::nan("") : to_y(area, p.y));
  // Noisy lines are thin, smooth ones may be bold.
  const bool dense = !line.smooth && polygon.size() > area.width();
  // Round caps would close the gaps of dots and dashes.
  const Qt::PenCapStyle cap = line.origin == Origin::measured ? Qt::RoundCap : Qt::FlatCap;
  QPen pen(color_of(line), dense || line.origin == Origin::asked ? 1.0 : 1.7, pen_style(line.origin), cap,
           Qt::RoundJoin);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  polyline(painter, polygon);
}

void Plot::paint_marks(QPainter& painter, const QRectF& area, const PlotLine& line) const {
  const views::Series& series = line.smooth ? *line.smooth : *line.raw;
  if (line.marks == Marks::none && series.size() != 1) return;  // a single sample is drawn as a mark
  const auto [begin, end] = series.window(link_.range().low, link_.range().high);
  if (static_cast<double>(end - begin) >= area.width() / 6) return;
  painter.setPen(QPen(theme().panel, 1));
  painter.setBrush(color_of(line));
  for (size_t i = begin; i < end; ++i) {
    const QPointF p(to_x(area, series[i].x), to_y(area, series[i].y));
    if (std::isfinite(p.y()) && area.adjusted(-1, -1, 1, 1).contains(p)) paint_mark(painter, line.marks, p);
  }
}

// Separate bars without connecting lines; predicted ones are hatched.
void Plot::paint_bars(QPainter& painter, const QRectF& area) const {
  const Stack stack = stack_.sample(link_.range().low, link_.range().high, std::max(2, static_cast<int>(area.width())));
  double gap = area.width();
  for (size_t i = 1; i < link_.stops().size(); ++i)
    gap = std::min(gap, to_x(area, link_.stops()[i].value) - to_x(area, link_.stops()[i - 1].value));
  const double place = std::clamp(gap * 0.62, 3.0, 42.0);
  const bool fills = stack_.bar_width > 0;
  for (size_t i = 0; i < stack.x.size(); ++i) {
    const double left = std::round(to_x(area, stack.x[i]) - (fills ? 0 : place / 2));
    const double wide = fills ? std::max(1.0, std::round(to_x(area, stack.x[i] + stack_.bar_width)) - left - 1) : place;
    const bool predicted = stack_.origin_at(stack.x[i]) != Origin::measured;
    double floor = 0;
    for (size_t layer = 0; layer < stack.values.size(); ++layer) {
      const auto& [name, color] = stack_.layers[layer];
      const double value = stack.values[layer][i];
      if (hidden(name) || value <= 0) continue;
      const double top = to_y(area, floor + value), bottom = to_y(area, floor);
      const QRectF bar(left, top, wide, bottom - top);
      painter.fillRect(bar, mix(theme().panel, color, predicted ? 0.25 : 0.88));
      if (predicted) painter.fillRect(bar, QBrush(color, Qt::BDiagPattern));
      painter.fillRect(QRectF(left, top, wide, std::min(1.0, bar.height() / 3)), theme().panel);
      floor += value;
    }
    if (floor <= y_.high) continue;  // otherwise the bar extends beyond the chart
    painter.setPen(theme().bad);
    painter.setFont(small_font());
    painter.drawText(QRectF(left - 20, area.top(), wide + 40, 14), Qt::AlignCenter, u"\u2191"_s);
  }
}

void Plot::paint_notes(QPainter& painter, const QRectF& area) const {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  std::map<double, int> above;  // several at one position are stacked
  for (const PlotNote& note : notes_) {
    const double x = to_x(area, note.x);
    if (x < area.left() - 1 || x > area.right() + 1) continue;
    const QPointF at(x, area.bottom() - 8 - 12 * above[note.x]++);
    painter.setPen(Qt::NoPen);
    painter.setBrush(faded(theme().panel, 0.88));
    painter.drawEllipse(at, 6, 6);
    painter.setPen(QPen(note.color, 1.8, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(at + QPointF(-3, -3), at + QPointF(3, 3));
    painter.drawLine(at + QPointF(-3, 3), at + QPointF(3, -3));
  }
  painter.restore();
}

// Opaque and without antialiasing, which would nearly double the painting time.
void Plot::paint_stack(QPainter& painter, const QRectF& area) const {
  const Span x = link_.range();
  const Stack stack = stack_.sample(x.low, x.high, std::max(2, static_cast<int>(area.width()) / 2));
  if (stack.x.empty()) return;
  std::vector<double> floor(stack.x.size(), 0.0);
  for (size_t layer = 0; layer < stack.values.size(); ++layer) {
    const auto& [name, color] = stack_.layers[layer];
    if (hidden(name)) continue;
    QPolygonF top, bottom;
    double largest = 0;
    for (size_t i = 0; i < stack.x.size(); ++i) {
      const double px = to_x(area, stack.x[i]);
      bottom << QPointF(px, to_y(area, floor[i]));
      floor[i] += stack.values[layer][i];
      largest = std::max(largest, stack.values[layer][i]);
      top << QPointF(px, to_y(area, floor[i]));
    }
    if (largest <= 0) continue;
    std::reverse(bottom.begin(), bottom.end());
    painter.setPen(Qt::NoPen);
    painter.setBrush(mix(theme().panel, color, 0.88));
    painter.drawPolygon(top + bottom);
    painter.setPen(theme().panel);
    painter.drawPolyline(top);
  }
}

}  // namespace mw::ui
