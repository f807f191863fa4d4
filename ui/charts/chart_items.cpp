// SPDX-License-Identifier: GPL-3.0-or-later
// Chart::items() makes the content of a chart's picture from its lines and layers in the visible range, with at most
// about two points per pixel. Dense lines have a one-pixel pen, because wide antialiased ones take twenty times as
// long.
#include <algorithm>
#include <cmath>

#include "ui/charts/chart.h"
#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kTickWidth = 78, kTickHeight = 30;  // pixels per label of an axis

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
SceneArea envelope(const views::Series& series, Span x, int columns, const QBrush& brush) {
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

}  // namespace

SceneItems Chart::items(const QRectF& area) const {
  SceneItems out;
  if (options_.rows) {
    add_row_axes(area, out);
    if (stack_.sample) add_bars(area, out);
    for (const LevelLine& level : levels_)
      if (level.value <= y_.high)
        out.lines.push_back({{{level.value, out.y.range.low}, {level.value, out.y.range.high}}, level_pen(level)});
    return out;
  }
  add_axes(area, out);
  if (stack_.sample && stack_.shape == Shape::areas) add_stack(area, out);
  if (stack_.sample && stack_.shape == Shape::bars) add_bars(area, out);
  for (const ChartLine& line : lines_)
    if (line.low && line.high && !hidden(line.name)) add_interval(line, out);
  for (const ChartLine& line : lines_)
    if (line.raw && line.smooth && !hidden(line.name)) add_raw(area, line, out);
  for (const ChartLine& line : lines_)
    if (line.raw && !hidden(line.name)) add_line(area, line, out);
  for (const ChartLine& line : lines_)
    if (line.raw && !hidden(line.name)) add_marks(area, line, out);
  const Span x = link_.range();
  for (const LevelLine& level : levels_)
    if (level.value <= y_.high) out.lines.push_back({{{x.low, level.value}, {x.high, level.value}}, level_pen(level)});
  for (const LevelLine& limit : limits_)
    if (limit.value >= x.low && limit.value <= x.high)
      out.lines.push_back({{{limit.value, y_.low}, {limit.value, y_.high}}, level_pen(limit)});
  for (SceneArea& each : out.areas) map_y(each.upper), map_y(each.lower);
  for (SceneLine& each : out.lines) map_y(each.points);
  for (SceneMarks& each : out.marks) map_y(each.points);
  return out;
}

// Logarithms are shown on a linear axis: QLogValueAxis has labels at whole powers of ten only, hence none between 2 and
// 4. Values far outside are clamped, because painters overflow.
double Chart::axis_y(double y) const {
  if (std::isnan(y)) return y;  // a gap
  const bool logarithmic = is_logarithmic();
  const Span axis = logarithmic ? Span{std::log10(y_.low), std::log10(y_.high)} : y_;
  const double at = !logarithmic ? y : y > 0 ? std::log10(y) : axis.low - 0.1 * axis.size();
  return std::clamp(at, axis.low - 4 * axis.size(), axis.high + 4 * axis.size());
}

void Chart::map_y(QList<QPointF>& points) const {
  for (QPointF& point : points) point.setY(axis_y(point.y()));
}

void Chart::add_axes(const QRectF& area, SceneItems& out) const {
  const Span x = link_.range();
  const auto outside = [](Span range) {
    return [range](const Tick& tick) { return tick.value < range.low || tick.value > range.high; };
  };
  const double air = kAir * x.size() / area.width();
  out.x = {{x.low - air, x.high + air}, link_.stops()};
  if (out.x.ticks.empty())
    out.x.ticks = ticks(x, std::max(2, static_cast<int>(area.width() / kTickWidth)), link_.x_quantity(), Scale::linear);
  std::erase_if(out.x.ticks, outside(x));
  blank_crowded_labels(out.x.ticks, width(), [&](double value) { return to_x(area, value); });
  out.y = {{axis_y(y_.low), axis_y(y_.high)}, y_ticks(area)};
  std::erase_if(out.y.ticks, outside(y_));
  for (Tick& tick : out.y.ticks) tick.value = axis_y(tick.value);
  if (height() < kTitledHeight) return;
  out.x.title = capitalized(link_.x_name());
  out.y.title = y_title(area.height());
}

// The longest of its forms that fits along the axis, because Qt Charts would elide it. The ticks of times and bytes
// have units, and what is behind a comma says how the values were taken.
QString Chart::y_title(double room) const {
  const QString unit = options_.quantity == Quantity::plain ? options_.unit.section(u", "_s, 0, 0) : QString();
  const QString last = options_.title.section(u' ', -1);
  const QFontMetricsF metrics(small_font());
  for (const QString& form : {unit, options_.title, unit.section(u' ', 0, 0), capitalized(last)})
    if (!form.isEmpty() && metrics.horizontalAdvance(form) <= room) return form;
  return {};
}

std::vector<Tick> Chart::y_ticks(const QRectF& area) const {
  return ticks(y_, std::max(2, static_cast<int>(area.height() / kTickHeight)), options_.quantity, scale_);
}

QColor Chart::color_of(const ChartLine& line) const {
  return emphasis_ < 0 || line.group == emphasis_ ? line.color : faded(line.color, 0.22);
}

// The samples behind a smoothed line.
void Chart::add_raw(const QRectF& area, const ChartLine& line, SceneItems& out) const {
  const views::Series& raw = *line.raw;
  const Span x = link_.range();
  const int columns = static_cast<int>(area.width());
  const auto [begin, end] = raw.window(x.low, x.high);
  const double alpha = theme().shade == Shade::dark ? 0.30 : 0.26;
  if (end - begin < static_cast<size_t>(columns))  // fewer samples than pixels: draws every sample
    out.lines.push_back({points_of(raw.decimate(x.low, x.high, columns)), QPen(faded(line.color, alpha + 0.15), 1)});
  else
    out.areas.push_back(envelope(raw, x, columns, faded(line.color, alpha)));
}

void Chart::add_interval(const ChartLine& line, SceneItems& out) const {
  SceneArea band;
  for (size_t i = 0; i < line.high->size() && i < line.low->size(); ++i) {
    const views::Point top = (*line.high)[i], bottom = (*line.low)[i];
    if (std::isnan(top.y) || std::isnan(bottom.y)) continue;
    band.upper << QPointF(top.x, top.y);
    band.lower << QPointF(bottom.x, bottom.y);
  }
  const double alpha = (theme().shade == Shade::dark ? 0.20 : 0.15) * color_of(line).alphaF();
  if (band.upper.size() == 1)  // a whisker
    return out.lines.push_back({{band.upper.front(), band.lower.front()}, QPen(faded(line.color, alpha * 3), 3)});
  band.brush = faded(line.color, alpha);
  out.areas.push_back(std::move(band));
}

void Chart::add_line(const QRectF& area, const ChartLine& line, SceneItems& out) const {
  const views::Series& series = line.smooth ? *line.smooth : *line.raw;
  const Span x = link_.range();
  const int columns = std::max(2, static_cast<int>(area.width()) / (line.smooth ? 3 : 2));
  QList<QPointF> points = points_of(line.path.empty() ? series.decimate(x.low, x.high, columns) : line.path);
  // Noisy lines are thin, smooth ones may be bold.
  const bool dense = !line.smooth && static_cast<double>(points.size()) > area.width();
  // Round caps would close the gaps of dots and dashes.
  const Qt::PenCapStyle cap = line.origin == Origin::measured ? Qt::RoundCap : Qt::FlatCap;
  const QPen pen(color_of(line), dense || line.origin == Origin::requested ? 1.0 : 1.7, pen_style(line.origin), cap,
                 Qt::RoundJoin);
  out.lines.push_back({std::move(points), pen});
}

void Chart::add_marks(const QRectF& area, const ChartLine& line, SceneItems& out) const {
  const views::Series& series = line.smooth ? *line.smooth : *line.raw;
  if (line.marks == Marks::none && series.size() != 1) return;  // a single sample is drawn as a mark
  const auto [begin, end] = series.window(link_.range().low, link_.range().high);
  SceneMarks marks{.shape = line.marks, .color = color_of(line)};
  bool has_line = false;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(series[i].y)) continue;
    marks.points << QPointF(series[i].x, series[i].y);
    has_line = has_line || (i > begin && std::isfinite(series[i - 1].y));
  }
  if (has_line && static_cast<double>(end - begin) >= area.width() / 6) return;  // close marks would hide the line
  out.marks.push_back(std::move(marks));
}

void Chart::add_stack(const QRectF& area, SceneItems& out) const {
  const Span x = link_.range();
  const Stack stack = stack_.sample(x.low, x.high, std::max(2, static_cast<int>(area.width()) / 2));
  std::vector<double> floor(stack.x.size(), 0.0);
  for (size_t layer = 0; layer < stack.values.size(); ++layer) {
    const auto& [name, color] = stack_.layers[layer];
    const std::vector<double>& values = stack.values[layer];
    if (hidden(name) || std::none_of(values.begin(), values.end(), [](double v) { return v > 0; })) continue;
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
void Chart::add_bars(const QRectF& area, SceneItems& out) const {
  const Stack stack = stack_.sample(link_.range().low, link_.range().high, std::max(2, static_cast<int>(area.width())));
  const double pixel = link_.range().size() / (options_.rows ? area.height() : area.width());
  const auto corner = [this](double x, double y) { return options_.rows ? QPointF(y, -x) : QPointF(x, y); };
  const double solid = bars_.is_outdated ? 0.35 : 0.88, light = bars_.is_outdated ? 0.1 : 0.25;
  std::vector<double> floor = stack.start;
  floor.resize(stack.x.size());
  for (size_t layer = 0; layer < stack.values.size(); ++layer) {
    const auto& [name, color] = stack_.layers[layer];
    if (hidden(name)) continue;
    SceneArea measured{.brush = mix(theme().panel, color, solid)}, predicted{.brush = mix(theme().panel, color, light)};
    for (size_t i = 0; i < stack.x.size(); ++i) {
      const double value = stack.values[layer][i];
      if (value <= 0) continue;
      const Span bar = bar_span(stack.x[i], pixel);
      SceneArea& bars = stack_.origin_at(stack.x[i]) == Origin::measured ? measured : predicted;
      const double top = floor[i] + value, ground = y_.low;
      bars.upper << corner(bar.low, ground) << corner(bar.low, top) << corner(bar.high, top)
                 << corner(bar.high, ground);
      bars.lower << corner(bar.low, ground) << corner(bar.low, floor[i]) << corner(bar.high, floor[i])
                 << corner(bar.high, ground);
      floor[i] += value;
    }
    for (SceneArea* bars : {&measured, &predicted})
      if (!bars->upper.empty()) out.areas.push_back(*bars);
    if (predicted.upper.empty()) continue;
    predicted.brush = QBrush(bars_.is_outdated ? mix(theme().panel, color, 0.4) : color, Qt::BDiagPattern);
    out.areas.push_back(std::move(predicted));
  }
  for (size_t i = 0; !options_.rows && i < stack.x.size(); ++i)
    if (const Span bar = bar_span(stack.x[i], pixel); floor[i] > y_.high)
      out.cut_bars.push_back((bar.low + bar.high) / 2);
}

// `pixel`: the width of a pixel on the x axis.
Span Chart::bar_span(double x, double pixel) const {
  if (stack_.bar_width > 0) return {x, x + std::max(stack_.bar_width - pixel, pixel)};
  double gap = link_.range().size();
  for (size_t i = 1; i < link_.stops().size(); ++i)
    gap = std::min(gap, link_.stops()[i].value - link_.stops()[i - 1].value);
  const double width = std::clamp(gap * (options_.rows ? 0.74 : 0.62), 3 * pixel, (options_.rows ? 22 : 42) * pixel);
  return {x - width / 2, x + width / 2};
}

}  // namespace mw::ui
