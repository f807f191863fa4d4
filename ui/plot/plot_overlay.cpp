// SPDX-License-Identifier: GPL-3.0-or-later
// Overlays of a Plot: levels and limits with labels, legend entries, cursor and readout.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/plot/plot.h"
#include "ui/plot/plot_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

// Labels are beside their line where there is room, or in the upper left corner if the level is above the chart.
std::vector<QRectF> Plot::level_labels(const QRectF& area) const {
  const QFontMetricsF metrics(small_font());
  constexpr double kHeight = 15, kStep = kHeight + 2;
  std::vector<QRectF> labels;
  const auto free = [&](const QRectF& at, const LevelLine& own) {
    if (at.top() < area.top() || at.bottom() > area.bottom()) return false;
    for (const QRectF& other : labels)
      if (at.intersects(other)) return false;
    for (const LevelLine& other : levels_)
      if (&other != &own && other.value <= y_.high && at.top() - 1 < to_y(area, other.value) &&
          to_y(area, other.value) < at.bottom() + 1)
        return false;
    return true;
  };
  double edge = area.top() + 2;
  for (const LevelLine& level : levels_) {
    const double w = metrics.horizontalAdvance(level_text(level)) + 8, y = to_y(area, level.value);
    const double left = area.left() + 4, right = area.right() - w - 2;
    if (level.value > y_.high) {
      labels.emplace_back(left, edge, w, kHeight);
      edge += kStep;
      continue;
    }
    const bool bars = stack_.shape == Shape::bars;  // bars are low at the left
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

QString Plot::level_text(const LevelLine& level) const {
  const QString text = level.name + u' ' + value_text(level.value, options_.quantity);
  return level.value > y_.high ? text + u" \u2191"_s : text;
}

void Plot::paint_levels(QPainter& painter, const QRectF& area) const {
  painter.setFont(small_font());
  const std::vector<QRectF> labels = level_labels(area);
  for (const LevelLine& level : levels_) {
    if (level.value > y_.high) continue;
    const double y = to_y(area, level.value);
    painter.setPen(QPen(level.color, 1.4, pen_style(level.origin)));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
  }
  for (size_t i = 0; i < levels_.size(); ++i) {
    painter.fillRect(labels[i], faded(theme().panel, 0.78));
    painter.setPen(levels_[i].color);
    painter.drawText(labels[i], Qt::AlignCenter, level_text(levels_[i]));
  }
}

void Plot::paint_limits(QPainter& painter, const QRectF& area) const {
  painter.setFont(small_font());
  const QFontMetricsF metrics(painter.font());
  double top = area.top() + 2;
  for (const LevelLine& limit : limits_) {
    const bool beyond = limit.value > link_.range().high;
    if (limit.value < link_.range().low) continue;
    QString text =
        limit.name + u' ' + (limit.text.isEmpty() ? value_text(limit.value, link_.x_quantity()) : limit.text);
    if (beyond) text += u" \u2192"_s;
    const double x = std::round(to_x(area, limit.value)) + 0.5, w = metrics.horizontalAdvance(text) + 8;
    if (!beyond) {
      painter.setPen(QPen(limit.color, 1.4, pen_style(limit.origin)));
      painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
    const double left = beyond ? area.right() - w : x + w + 2 < area.right() ? x + 2 : x - w - 2;
    const QRectF at(left, top, w, 15);
    painter.fillRect(at, faded(theme().panel, 0.78));
    painter.setPen(limit.color);
    painter.drawText(at, Qt::AlignCenter, text);
    top += 17;
  }
}

std::vector<Plot::LegendEntry> Plot::legend() const {
  std::vector<LegendEntry> out;
  const auto reading = link_.reading();
  for (const PlotLine& line : lines_) {
    if (!line.raw || line.raw->empty()) continue;
    const views::Series& s = line.smooth && !line.smooth->empty() ? *line.smooth : *line.raw;
    const size_t at = reading ? s.nearest(*reading).value_or(0) : s.size() - 1;
    out.push_back({.name = line.name,
                   .color = line.color,
                   .origin = line.origin,
                   .value = value_text(s[at].y, options_.quantity),
                   .marks = line.marks,
                   .group = line.group});
  }
  if (!stack_.at) return out;
  const auto values = !reading && stack_.overall ? stack_.overall() : stack_.at(reading.value_or(link_.data().high));
  double total = 0;
  for (const double v : values) total += v;
  const Origin origin = stack_.origin_at(reading.value_or(link_.data().high));
  if (!values.empty())
    out.push_back({origin == Origin::predicted ? tr("predicted total") : tr("total"),
                   {},
                   origin,
                   value_text(total, options_.quantity)});
  for (size_t i = stack_.layers.size(); i-- > 0;)  // in visual order: the top layer first
    if (i < values.size() && values[i] > 0)
      out.push_back({stack_.layers[i].first, stack_.layers[i].second, Origin::measured,
                     value_text(values[i], options_.quantity)});
  return out;
}

void Plot::paint_cursor(QPainter& painter, const QRectF& area) const {
  if (empty()) return;
  const Theme& t = theme();
  const auto inside = [&](double x) { return x >= link_.range().low && x <= link_.range().high; };
  if (const auto head = link_.playhead(); head && inside(*head)) {
    const double x = to_x(area, *head);
    painter.setPen(QPen(t.accent, 1.5));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  const auto reading = link_.reading();
  if (!reading || !inside(*reading)) return;
  const double x = std::round(to_x(area, *reading)) + 0.5;
  if (link_.cursor()) {
    painter.setPen(QPen(t.muted, 1, Qt::DotLine));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  painter.setRenderHint(QPainter::Antialiasing);
  for (const PlotLine& line : lines_) {
    if (!line.raw || line.raw->empty() || hidden(line.name)) continue;
    const views::Series& s = line.smooth ? *line.smooth : *line.raw;
    const auto at = s.nearest(*reading);
    if (!at || std::isnan(s[*at].y)) continue;
    const QPointF p(to_x(area, s[*at].x), to_y(area, s[*at].y));
    if (!area.adjusted(-1, -1, 1, 1).contains(p)) continue;
    painter.setPen(QPen(t.panel, 1.2));
    painter.setBrush(line.color);
    painter.drawEllipse(p, 3.6, 3.6);
  }
  if (stack_.at && (stack_.shape == Shape::areas || link_.cursor())) paint_split(painter, area, x);
  painter.setFont(small_font());
  const QString text = link_.x_name() + u' ' + link_.x_text(*reading);
  const double w = QFontMetricsF(painter.font()).horizontalAdvance(text) + 12;
  const QRectF pill(std::clamp(x - w / 2, 2.0, std::max(2.0, width() - w - 2)), area.bottom() + 2, w, 16);
  painter.setPen(Qt::NoPen);
  painter.setBrush(link_.cursor() ? t.text : t.accent);
  painter.drawRoundedRect(pill, 8, 8);
  painter.setPen(link_.cursor() ? t.panel : t.accent_text);
  painter.drawText(pill, Qt::AlignCenter, text);
}

// The values of all layers beside the cursor.
void Plot::paint_split(QPainter& painter, const QRectF& area, double x) const {
  const Theme& t = theme();
  const auto entries = legend();
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

}  // namespace mw::ui
