// SPDX-License-Identifier: GPL-3.0-or-later
// chart_items() makes the content of a chart's picture from its lines and layers in the visible range, with at most
// about two points per pixel. Dense lines have a one-pixel pen, because wide antialiased ones take twenty times as
// long.
#include <algorithm>
#include <cmath>

#include "ui/charts/chart_paint.h"
#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kTickWidth = 78;  // pixels per label of the x axis

QPen level_pen(const LevelLine& level) {
  return QPen(level.color, 1.4, pen_style(level.origin));
}

// Labels that would cover the one before, or that end outside of the chart, are left blank; their grid line stays.
void blank_crowded_labels(std::vector<Tick>& ticks, double width, auto pixel_of) {
  const QFontMetricsF metrics(small_font());
  double taken = 2;  // where the last label ends
  for (Tick& tick : ticks) {
    const double half = metrics.horizontalAdvance(tick.label) / 2, at = pixel_of(tick.value);
    if (at - half < taken || at + half > width - 2)
      tick.label.clear();
    else
      taken = at + half + 4;
  }
}

// The band between the smallest and the largest sample of each pixel column.
SceneArea envelope(const views::Series& series, AxisRange x, int columns, const QBrush& brush) {
  SceneArea area{.brush = brush};
  const double dx = x.size() / columns;
  for (int c = 0; c < columns; ++c) {
    const auto range = series.y_range(x.low + c * dx, x.low + (c + 1) * dx);
    if (!range) continue;
    area.upper << QPointF(x.low + (c + 0.5) * dx, range->max);
    area.lower << QPointF(x.low + (c + 0.5) * dx, range->min);
  }
  return area;
}

QList<QPointF> points_of(const std::vector<views::Point>& points) {
  QList<QPointF> out;
  out.reserve(static_cast<qsizetype>(points.size()));
  for (const views::Point& p : points) out << QPointF(p.x, p.y);
  return out;
}

void map_y(const ChartAxes& axes, QList<QPointF>& points) {
  for (QPointF& point : points) point.setY(axes.axis_y(point.y()));
}

// `pixel`: the width of a pixel on the x axis.
AxisRange bar_span(const ChartAxes& axes, double x, double pixel) {
  if (axes.content.stack.bar_width > 0) return {x, x + std::max(axes.content.stack.bar_width - pixel, pixel)};
  double gap = axes.link.range().size();
  for (size_t i = 1; i < axes.link.stops().size(); ++i)
    gap = std::min(gap, axes.link.stops()[i].value - axes.link.stops()[i - 1].value);
  const double width = std::clamp(gap * (axes.content.options.rows ? 0.74 : 0.62), 3 * pixel,
                                  (axes.content.options.rows ? 22 : 42) * pixel);
  return {x - width / 2, x + width / 2};
}

void add_axes(const ChartAxes& axes, const QRectF& area, SceneItems& out) {
  const AxisRange x = axes.link.range();
  const auto outside = [](AxisRange range) {
    return [range](const Tick& tick) { return tick.value < range.low || tick.value > range.high; };
  };
  const double air = ChartAxes::kAir * x.size() / area.width();
  out.x = {{x.low - air, x.high + air}, axes.link.stops()};
  if (out.x.ticks.empty())
    out.x.ticks =
        ticks(x, std::max(2, static_cast<int>(area.width() / kTickWidth)), axes.link.x_quantity(), Scale::linear);
  std::erase_if(out.x.ticks, outside(x));
  blank_crowded_labels(out.x.ticks, axes.size.width(), [&](double value) { return axes.to_x(area, value); });
  out.y = {{axes.axis_y(axes.y().low), axes.axis_y(axes.y().high)}, axes.y_ticks(area)};
  std::erase_if(out.y.ticks, outside(axes.y()));
  for (Tick& tick : out.y.ticks) tick.value = axes.axis_y(tick.value);
  if (axes.size.height() < kTitledHeight) return;
  out.x.title = capitalized(axes.link.x_name());
  out.y.title = axes.y_title(area.height());
}

// The samples behind a smoothed line.
void add_raw(const ChartAxes& axes, const QRectF& area, const ChartLine& line, SceneItems& out) {
  const views::Series& raw = *line.raw;
  const AxisRange x = axes.link.range();
  const int columns = static_cast<int>(area.width());
  const auto [begin, end] = raw.window(x.low, x.high);
  const double alpha = theme().shade == Shade::dark ? 0.30 : 0.26;
  if (end - begin < static_cast<size_t>(columns))  // fewer samples than pixels: draws every sample
    out.lines.push_back({points_of(raw.decimate(x.low, x.high, columns)), QPen(faded(line.color, alpha + 0.15), 1)});
  else
    out.areas.push_back(envelope(raw, x, columns, faded(line.color, alpha)));
}

void add_interval(const ChartAxes& axes, const ChartLine& line, SceneItems& out) {
  SceneArea band;
  for (size_t i = 0; i < line.high->size() && i < line.low->size(); ++i) {
    const views::Point top = (*line.high)[i], bottom = (*line.low)[i];
    if (std::isnan(top.y) || std::isnan(bottom.y)) continue;
    band.upper << QPointF(top.x, top.y);
    band.lower << QPointF(bottom.x, bottom.y);
  }
  const double alpha = (theme().shade == Shade::dark ? 0.20 : 0.15) * axes.content.color_of(line).alphaF();
  if (band.upper.size() == 1)  // a whisker
    return out.lines.push_back({{band.upper.front(), band.lower.front()}, QPen(faded(line.color, alpha * 3), 3)});
  band.brush = faded(line.color, alpha);
  out.areas.push_back(std::move(band));
}

void add_line(const ChartAxes& axes, const QRectF& area, const ChartLine& line, SceneItems& out) {
  const views::Series& series = line.smooth ? *line.smooth : *line.raw;
  const AxisRange x = axes.link.range();
  const int columns = std::max(2, static_cast<int>(area.width()) / (line.smooth ? 3 : 2));
  QList<QPointF> points = points_of(line.path.empty() ? series.decimate(x.low, x.high, columns) : line.path);
  // Noisy lines are thin, smooth ones may be bold.
  const bool dense = !line.smooth && static_cast<double>(points.size()) > area.width();
  // Round caps would close the gaps of dots and dashes.
  const Qt::PenCapStyle cap = line.origin == LineOrigin::measured ? Qt::RoundCap : Qt::FlatCap;
  const QPen pen(axes.content.color_of(line), dense || line.origin == LineOrigin::requested ? 1.0 : 1.7,
                 pen_style(line.origin), cap, Qt::RoundJoin);
  out.lines.push_back({std::move(points), pen});
}

void add_marks(const ChartAxes& axes, const QRectF& area, const ChartLine& line, SceneItems& out) {
  const views::Series& series = line.smooth ? *line.smooth : *line.raw;
  if (line.marks == Marks::none && series.size() != 1) return;  // a single sample is drawn as a mark
  const auto [begin, end] = series.window(axes.link.range().low, axes.link.range().high);
  SceneMarks marks{.shape = line.marks, .color = axes.content.color_of(line)};
  bool has_line = false;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(series[i].y)) continue;
    marks.points << QPointF(series[i].x, series[i].y);
    has_line = has_line || (i > begin && std::isfinite(series[i - 1].y));
  }
  if (has_line && static_cast<double>(end - begin) >= area.width() / 6) return;  // close marks would hide the line
  out.marks.push_back(std::move(marks));
}

void add_stack(const ChartAxes& axes, const QRectF& area, SceneItems& out) {
  const AxisRange x = axes.link.range();
  const StackSamples stack = axes.content.stack.sample(x.low, x.high, std::max(2, static_cast<int>(area.width()) / 2));
  std::vector<double> floor(stack.x.size(), 0.0);
  for (size_t layer = 0; layer < stack.values.size(); ++layer) {
    const auto& [name, color] = axes.content.stack.layers[layer];
    const std::vector<double>& values = stack.values[layer];
    if (axes.content.is_hidden(name) || std::none_of(values.begin(), values.end(), [](double v) { return v > 0; }))
      continue;
    SceneArea filled{.brush = mix(theme().panel, color, 0.88)};
    for (size_t i = 0; i < stack.x.size(); ++i) {
      filled.lower << QPointF(stack.x[i], floor[i]);
      floor[i] += values[i];
      filled.upper << QPointF(stack.x[i], floor[i]);
    }
    out.areas.push_back(std::move(filled));  // without an edge, which would hide layers of one or two pixels
  }
}

// The bars of a layer are one area that has no height between them: QBarSeries has its bars at whole numbers only. The
// fill of predicted ones is hatched. Rows have the axes swapped and go down.
void add_bars(const ChartAxes& axes, const QRectF& area, SceneItems& out) {
  const StackSamples stack = axes.content.stack.sample(axes.link.range().low, axes.link.range().high,
                                                       std::max(2, static_cast<int>(area.width())));
  const double pixel = axes.link.range().size() / (axes.content.options.rows ? area.height() : area.width());
  const auto corner = [&axes](double x, double y) {
    return axes.content.options.rows ? QPointF(y, -x) : QPointF(x, y);
  };
  const double solid = axes.content.bars.is_outdated ? 0.35 : 0.88, light = axes.content.bars.is_outdated ? 0.1 : 0.25;
  std::vector<double> floor = stack.start;
  floor.resize(stack.x.size());
  for (size_t layer = 0; layer < stack.values.size(); ++layer) {
    const auto& [name, color] = axes.content.stack.layers[layer];
    if (axes.content.is_hidden(name)) continue;
    SceneArea measured{.brush = mix(theme().panel, color, solid)}, predicted{.brush = mix(theme().panel, color, light)};
    for (size_t i = 0; i < stack.x.size(); ++i) {
      const double value = stack.values[layer][i];
      if (value <= 0) continue;
      const AxisRange bar = bar_span(axes, stack.x[i], pixel);
      SceneArea& bars = axes.content.stack.origin_at(stack.x[i]) == LineOrigin::measured ? measured : predicted;
      const double top = floor[i] + value, ground = axes.y().low;
      bars.upper << corner(bar.low, ground) << corner(bar.low, top) << corner(bar.high, top)
                 << corner(bar.high, ground);
      bars.lower << corner(bar.low, ground) << corner(bar.low, floor[i]) << corner(bar.high, floor[i])
                 << corner(bar.high, ground);
      floor[i] += value;
    }
    for (SceneArea* bars : {&measured, &predicted})
      if (!bars->upper.empty()) out.areas.push_back(*bars);
    if (predicted.upper.empty()) continue;
    predicted.brush = QBrush(axes.content.bars.is_outdated ? mix(theme().panel, color, 0.4) : color, Qt::BDiagPattern);
    out.areas.push_back(std::move(predicted));
  }
  for (size_t i = 0; !axes.content.options.rows && i < stack.x.size(); ++i)
    if (const AxisRange bar = bar_span(axes, stack.x[i], pixel); floor[i] > axes.y().high)
      out.cut_bars.push_back((bar.low + bar.high) / 2);
}

}  // namespace

SceneItems chart_items(const ChartAxes& axes, const QRectF& area) {
  SceneItems out;
  if (axes.content.options.rows) {
    add_row_axes(axes, area, out);
    if (axes.content.stack.sample) add_bars(axes, area, out);
    for (const LevelLine& level : axes.content.levels)
      if (level.value <= axes.y().high)
        out.lines.push_back({{{level.value, out.y.range.low}, {level.value, out.y.range.high}}, level_pen(level)});
    return out;
  }
  add_axes(axes, area, out);
  if (axes.content.stack.sample && axes.content.stack.shape == Shape::areas) add_stack(axes, area, out);
  if (axes.content.stack.sample && axes.content.stack.shape == Shape::bars) add_bars(axes, area, out);
  for (const ChartLine& line : axes.content.lines)
    if (line.low && line.high && !axes.content.is_hidden(line.name)) add_interval(axes, line, out);
  for (const ChartLine& line : axes.content.lines)
    if (line.raw && line.smooth && !axes.content.is_hidden(line.name)) add_raw(axes, area, line, out);
  for (const ChartLine& line : axes.content.lines)
    if (line.raw && !axes.content.is_hidden(line.name)) add_line(axes, area, line, out);
  for (const ChartLine& line : axes.content.lines)
    if (line.raw && !axes.content.is_hidden(line.name)) add_marks(axes, area, line, out);
  const AxisRange x = axes.link.range();
  for (const LevelLine& level : axes.content.levels)
    if (level.value <= axes.y().high)
      out.lines.push_back({{{x.low, level.value}, {x.high, level.value}}, level_pen(level)});
  for (const LevelLine& limit : axes.content.limits)
    if (limit.value >= x.low && limit.value <= x.high)
      out.lines.push_back({{{limit.value, axes.y().low}, {limit.value, axes.y().high}}, level_pen(limit)});
  for (SceneArea& each : out.areas) map_y(axes, each.upper), map_y(axes, each.lower);
  for (SceneLine& each : out.lines) map_y(axes, each.points);
  for (SceneMarks& each : out.marks) map_y(axes, each.points);
  return out;
}

}  // namespace mw::ui
