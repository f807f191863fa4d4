// SPDX-License-Identifier: GPL-3.0-or-later
// Painting over the picture of Qt Charts: labels of levels and limits, cursor, notes.
#include "ui/charts/chart_paint.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ui/charts/chart_legend.h"
#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// An arrow above bars that end beyond the chart.
void paint_cut_bars(QPainter& painter, const ChartAxes& axes, const QRectF& area, const std::vector<double>& cut_bars) {
  painter.setPen(theme().bad);
  for (const double x : cut_bars)
    painter.drawText(QRectF(axes.to_x(area, x) - 20, area.top(), 40, 14), Qt::AlignCenter, u"\u2191"_s);
}

void paint_flags(QPainter& painter, const ChartAxes& axes, const QRectF& area, const ChartLine& line) {
  for (const ChartFlag& flag : line.flags) {
    const QPointF at(axes.to_x(area, flag.x), axes.to_y(area, flag.y));
    if (!area.adjusted(-1, -1, 1, 1).contains(at)) continue;
    painter.setPen(QPen(flag.color, 1.8));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(at, 6.5, 6.5);
    painter.drawText(QRectF(at.x() + 5, at.y() - 17, 10, 14), Qt::AlignCenter, u"!"_s);
  }
}

void paint_notes(QPainter& painter, const ChartAxes& axes, const QRectF& area) {
  std::map<double, int> above;  // several at one position are stacked
  for (const ChartNote& note : axes.content.notes) {
    const double x = axes.to_x(area, note.x);
    if (x < area.left() - 1 || x > area.right() + 1) continue;
    const QPointF at(x, area.bottom() - 8 - 12 * above[note.x]++);
    painter.setPen(Qt::NoPen);
    painter.setBrush(faded(theme().panel, 0.88));
    painter.drawEllipse(at, 6, 6);
    painter.setPen(QPen(note.color, 1.8, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(at + QPointF(-3, -3), at + QPointF(3, 3));
    painter.drawLine(at + QPointF(-3, 3), at + QPointF(3, -3));
  }
}

void paint_levels(QPainter& painter, const ChartAxes& axes, const QRectF& area) {
  const std::vector<QRectF> labels = level_labels(axes, area);
  for (size_t i = 0; i < axes.content.levels.size(); ++i) {
    painter.fillRect(labels[i], faded(theme().panel, 0.78));
    painter.setPen(axes.content.levels[i].color);
    painter.drawText(labels[i], Qt::AlignCenter, level_text(axes, axes.content.levels[i]));
  }
}

void paint_limits(QPainter& painter, const ChartAxes& axes, const QRectF& area) {
  const QFontMetricsF metrics(painter.font());
  double top = area.top() + 2;
  for (const LevelLine& limit : axes.content.limits) {
    const bool beyond = limit.value > axes.link.range().high;
    if (limit.value < axes.link.range().low) continue;
    QString text =
        limit.name + u' ' + (limit.text.isEmpty() ? value_text(limit.value, axes.link.x_quantity()) : limit.text);
    if (beyond) text += u" \u2192"_s;
    const double x = std::round(axes.to_x(area, limit.value)) + 0.5, w = metrics.horizontalAdvance(text) + 8;
    const double left = beyond ? area.right() - w : x + w + 2 < area.right() ? x + 2 : x - w - 2;
    const QRectF at(left, top, w, 15);
    painter.fillRect(at, faded(theme().panel, 0.78));
    painter.setPen(limit.color);
    painter.drawText(at, Qt::AlignCenter, text);
    top += 17;
  }
}

// The values of all layers beside the cursor.
void paint_split(QPainter& painter, const ChartAxes& axes, const QRectF& area, double x) {
  const Theme& t = theme();
  const auto entries = legend_entries(axes);
  if (entries.empty()) return;
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  double name_width = 0, value_width = 0;
  for (const LegendEntry& e : entries) {
    name_width = std::max(name_width, metrics.horizontalAdvance(e.name));
    value_width = std::max(value_width, metrics.horizontalAdvance(e.value));
  }
  const double row = 16, w = name_width + value_width + 42, h = row * static_cast<double>(entries.size()) + 8;
  const bool right = x + 12 + w < area.right();
  const QRectF box(right ? x + 12 : x - 12 - w, std::max(4.0, area.center().y() - h / 2), w, h);
  painter.setPen(t.line);
  painter.setBrush(faded(t.panel, 0.95));
  painter.drawRoundedRect(box, 4, 4);
  double y = box.top() + 4;
  for (const LegendEntry& e : entries) {
    if (e.color.isValid()) painter.fillRect(QRectF(box.left() + 8, y + 4, 9, 9), e.color);
    painter.setPen(t.muted);
    painter.drawText(QRectF(box.left() + 22, y, name_width + 2, row), Qt::AlignVCenter, e.name);
    painter.setPen(t.text);
    painter.drawText(QRectF(box.left(), y, w - 8, row), Qt::AlignVCenter | Qt::AlignRight, e.value);
    y += row;
  }
}

}  // namespace

// Labels are beside their line where there is room, or in the upper left corner if the level is above the chart.
std::vector<QRectF> level_labels(const ChartAxes& axes, const QRectF& area) {
  const QFontMetricsF metrics(small_font());
  constexpr double kHeight = 15, kStep = kHeight + 2;
  std::vector<QRectF> labels;
  const auto free = [&](const QRectF& at, const LevelLine& own) {
    if (at.top() < area.top() || at.bottom() > area.bottom()) return false;
    for (const QRectF& other : labels)
      if (at.intersects(other)) return false;
    for (const LevelLine& other : axes.content.levels)
      if (&other != &own && other.value <= axes.y().high && at.top() - 1 < axes.to_y(area, other.value) &&
          axes.to_y(area, other.value) < at.bottom() + 1)
        return false;
    return true;
  };
  double edge = area.top() + 2;
  for (const LevelLine& level : axes.content.levels) {
    const double w = metrics.horizontalAdvance(level_text(axes, level)) + 8, y = axes.to_y(area, level.value);
    const double left = area.left() + 4, right = area.right() - w - 2;
    if (level.value > axes.y().high) {
      labels.emplace_back(left, edge, w, kHeight);
      edge += kStep;
      continue;
    }
    const bool bars = axes.content.stack.shape == Shape::bars;  // bars are low at the left
    const double near = bars ? left : right, far = bars ? right : left;
    QRectF best(near, y - kStep >= area.top() ? y - kStep : y + 2, w, kHeight);
    std::vector<QPointF> places{{near, y - kStep}, {near, y + 2}, {far, y - kStep}, {far, y + 2}};
    for (double below = y + 2; below < area.bottom(); below += 3) places.emplace_back(near, below);
    for (const QPointF& at : places)
      if (const QRectF box(at, best.size()); free(box, level)) {
        best = box;
        break;
      }
    labels.push_back(best);
  }
  return labels;
}

QString level_text(const ChartAxes& axes, const LevelLine& level) {
  const QString text = level.name + u' ' + value_text(level.value, axes.content.options.quantity);
  return level.value > axes.y().high ? text + u" \u2191"_s : text;
}

void paint_annotations(QPainter& painter, const ChartAxes& axes, const QRectF& area,
                       const std::vector<double>& cut_bars) {
  painter.setFont(small_font());
  painter.setRenderHint(QPainter::Antialiasing);
  if (axes.content.options.rows) return paint_rows(painter, axes, area);
  for (const ChartLine& line : axes.content.lines)
    if (!axes.content.is_hidden(line.name)) paint_flags(painter, axes, area, line);
  paint_cut_bars(painter, axes, area, cut_bars);
  paint_levels(painter, axes, area);
  paint_limits(painter, axes, area);
  paint_notes(painter, axes, area);
}

void paint_cursor(QPainter& painter, const ChartAxes& axes, const QRectF& area) {
  if (axes.content.empty()) return;
  if (axes.content.options.rows) return paint_row_cursor(painter, axes, area);
  const Theme& t = theme();
  const auto inside = [&](double x) { return x >= axes.link.range().low && x <= axes.link.range().high; };
  if (const auto head = axes.link.playhead(); head && inside(*head)) {
    const double x = axes.to_x(area, *head);
    painter.setPen(QPen(t.accent, 1.5));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  const auto reading = axes.link.reading();
  if (!reading || !inside(*reading)) return;
  const double x = std::round(axes.to_x(area, *reading)) + 0.5;
  if (axes.link.cursor()) {
    painter.setPen(QPen(t.muted, 1, Qt::DotLine));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  painter.setRenderHint(QPainter::Antialiasing);
  for (const ChartLine& line : axes.content.lines) {
    if (!line.raw || line.raw->empty() || axes.content.is_hidden(line.name)) continue;
    const views::Series& s = line.smooth ? *line.smooth : *line.raw;
    const auto at = s.nearest(*reading);
    if (!at || std::isnan(s[*at].y)) continue;
    const QPointF p(axes.to_x(area, s[*at].x), axes.to_y(area, s[*at].y));
    if (!area.adjusted(-1, -1, 1, 1).contains(p)) continue;
    painter.setPen(QPen(t.panel, 1.2));
    painter.setBrush(line.color);
    painter.drawEllipse(p, 3.6, 3.6);
  }
  if (axes.content.stack.at && (axes.content.stack.shape == Shape::areas || axes.link.cursor()))
    paint_split(painter, axes, area, x);
  painter.setFont(small_font());
  const QString text = axes.link.x_name() + u' ' + axes.link.x_text(*reading);
  const double w = QFontMetricsF(painter.font()).horizontalAdvance(text) + 12;
  const QRectF pill(std::clamp(x - w / 2, 2.0, std::max(2.0, axes.size.width() - w - 2)), area.bottom() + 2, w, 16);
  painter.setPen(Qt::NoPen);
  painter.setBrush(axes.link.cursor() ? t.text : t.accent);
  painter.drawRoundedRect(pill, 8, 8);
  painter.setPen(axes.link.cursor() ? t.panel : t.accent_text);
  painter.drawText(pill, Qt::AlignCenter, text);
}

int nearest_group(const ChartAxes& axes, QPointF at) {
  const QRectF area = axes.area();
  int group = -1;
  double nearest = kNearPixels;
  for (const ChartLine& line : axes.content.lines) {
    if (line.group < 0 || !line.raw || line.raw->empty() || axes.content.is_hidden(line.name)) continue;
    const auto sample = line.raw->nearest(axes.x_at(at));
    if (!sample) continue;
    const views::Point p = (*line.raw)[*sample];
    const double distance = std::hypot(axes.to_x(area, p.x) - at.x(), axes.to_y(area, p.y) - at.y());
    if (distance < nearest) nearest = distance, group = line.group;
  }
  return group;
}

QString tip_at(const ChartAxes& axes, QPointF at) {
  if (QString tip = row_tip(axes, at); !tip.isEmpty()) return tip;
  const QRectF area = axes.area();
  for (const ChartLine& line : axes.content.lines)
    for (const ChartFlag& flag : line.flags)
      if (!axes.content.is_hidden(line.name) &&
          QLineF(QPointF(axes.to_x(area, flag.x), axes.to_y(area, flag.y)), at).length() < kNearPixels)
        return flag.text;
  return {};
}

}  // namespace mw::ui
