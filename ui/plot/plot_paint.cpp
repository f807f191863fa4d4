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
  QPen pen(color_of(line), dense || line.origin == Origin::requested ? 1.0 : 1.7, pen_style(line.origin), cap,
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

// --- Levels, limits, cursor and readout ---

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

// --- Title and legend ---

// Returns false if some entries did not fit even without names and were left out.
bool Plot::place_legend(std::vector<LegendEntry>& entries, int most, Names names, int& row) const {
  const QFontMetricsF metrics(small_font());
  double x = title_width() + 10;
  row = 0;
  const auto limit = [&] { return row == 0 ? header_end() - 6 : width() - 10.0; };  // buttons are in the first row
  for (LegendEntry& e : entries) {
    const bool layer = stack_.sample && e.color.isValid();
    if (layer) e.shown = false;
    const double mark = layer ? 13 : e.color.isValid() ? 16 : 0;
    const double value = layer ? 0 : metrics.horizontalAdvance(e.value);
    e.named = names == Names::where_they_fit || !e.color.isValid();
    double need = mark + (e.named ? metrics.horizontalAdvance(e.name) + (layer ? 0 : 5) : 0) + value;
    if (x + need > limit() && row + 1 < most) {
      ++row;
      x = 10;
    }
    if (x + need > limit() && !layer) {  // the name does not fit: mark and value only
      e.named = false;
      need = mark + value;
    }
    if (x + need > limit()) {
      entries.resize(static_cast<size_t>(&e - entries.data()));
      return false;
    }
    e.at = QRectF(x, 4 + 18 * row, need, 18);
    x = e.at.right() + 12;
  }
  return true;
}

void Plot::lay_out_legend() {
  const auto names = [](const std::vector<LegendEntry>& entries) {
    QStringList all;
    for (const LegendEntry& e : entries) all << e.name;
    return all;
  };
  const std::vector<LegendEntry> all = legend();
  if (names(all) != legend_names_) legend_rows_ = 1;
  legend_names_ = names(all);
  const bool many = stack_.sample || lines_.size() > 1;
  const bool very_many = stack_.shape == Shape::bars || lines_.size() > 4;
  const int most = !many || height() <= 170 ? 1 : very_many && height() > 190 ? 3 : 2;
  std::vector<LegendEntry> entries = all;
  int row = 0;
  if (!place_legend(entries, most, Names::where_they_fit, row) && !stack_.sample) {
    // If not all names fit, shows none.
    std::vector<LegendEntry> nameless = all;
    int rows = 0;
    if (place_legend(nameless, most, Names::none, rows)) {
      entries = std::move(nameless);
      row = rows;
    }
  }
  legend_ = std::move(entries);
  // The number of rows only grows while the entries are the same; otherwise the plot would jump under a moving cursor.
  if (row + 1 > legend_rows_ || legend_rows_ > most) {
    legend_rows_ = row + 1;
    stale_ = true;
  }
}

double Plot::title_width() const {
  const QFont bold = demi_bold(small_font());
  double width = 10 + QFontMetricsF(bold).horizontalAdvance(options_.title);
  if (!options_.unit.isEmpty()) width += 5 + QFontMetricsF(small_font()).horizontalAdvance(options_.unit);
  return width;
}

void Plot::paint_header(QPainter& painter) const {
  const Theme& t = theme();
  const QFont bold = demi_bold(small_font());
  painter.setFont(bold);
  painter.setPen(t.text);
  painter.drawText(QPointF(10, 17), options_.title);
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  if (!caption_.isEmpty() && !is_table_shown()) {
    painter.setPen(notes_.empty() ? t.muted : t.bad);
    const QRectF row(10, area().top() - kCaption - 1, width() - 20, kCaption);
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(caption_, Qt::ElideRight, row.width()));
  }
  painter.setPen(t.muted);
  painter.drawText(QPointF(title_width() - metrics.horizontalAdvance(options_.unit), 17), options_.unit);
  for (const LegendEntry& e : legend_) {
    const bool off = hidden(e.name);
    const double base = e.at.top() + 13, middle = e.at.top() + 9;
    double x = e.at.left();
    if (e.color.isValid() && stack_.sample) {
      painter.fillRect(QRectF(x, middle - 4, 9, 9), off ? t.line : e.color);
    } else if (e.color.isValid()) {
      painter.setPen(QPen(off ? t.line : e.color, 2, pen_style(e.origin)));
      painter.drawLine(QPointF(x, middle), QPointF(x + 12, middle));
      if (e.marks != Marks::none) {
        painter.setPen(QPen(t.panel, 1));
        painter.setBrush(off ? t.line : e.color);
        paint_mark(painter, e.marks, QPointF(x + 6, middle));
      }
    }
    x += !e.color.isValid() ? 0 : stack_.sample ? 13 : 16;
    if (e.named) {
      painter.setPen(off ? t.faint : t.muted);
      painter.drawText(QPointF(x, base), e.name);
      x += metrics.horizontalAdvance(e.name) + 5;
    }
    if (!e.shown) continue;
    painter.setPen(off ? t.faint : t.text);
    painter.drawText(QPointF(x, base), e.value);
  }
}

}  // namespace mw::ui
