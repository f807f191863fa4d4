// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_axes.h"

#include <QFontMetricsF>
#include <algorithm>
#include <cmath>

#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {
constexpr double kHeader = 25;
constexpr double kTickPadding = 5, kTitlePadding = 2;  // of Qt Charts, beside labels and around titles
double title_height() {
  return QFontMetricsF(small_font()).height() + 8 + 2 * kTitlePadding;  // a text item has margins of 4 pixels
}
double bottom_margin(double height) {
  return QFontMetricsF(small_font()).height() + kTickPadding + (height < kTitledHeight ? 2 : title_height());
}
constexpr double kTickHeight = 30;  // pixels per label
}  // namespace

bool ChartContent::empty() const {
  return !stack.sample && std::ranges::all_of(lines, [](const ChartLine& l) { return !l.raw || l.raw->empty(); });
}

QColor ChartContent::color_of(const ChartLine& line) const {
  return emphasis < 0 || line.group == emphasis ? line.color : faded(line.color, 0.22);
}

void ChartAxes::update() {
  update_y();
  fit_margin();
}

QRectF ChartAxes::area() const {
  const bool labels_above = content.options.rows && !content.levels.empty();
  const double top = kHeader + 18 * (legend_rows - 1) + (content.caption.isEmpty() ? 0 : kCaption) +
                     (labels_above ? kCaption : 0) +
                     (content.caption.isEmpty() && legend_rows == 1 ? 0 : kTickOverhang);
  return QRectF(left_margin_, top, std::max(10.0, size.width() - left_margin_ - right_margin_),
                std::max(10.0, size.height() - top - bottom_margin(size.height())));
}

double ChartAxes::below() const {
  return bottom_margin(size.height());
}

double ChartAxes::to_x(const QRectF& area, double x) const {
  const AxisRange r = link.range();
  return area.left() + (x - r.low) / r.size() * area.width();
}

double ChartAxes::to_y(const QRectF& area, double y) const {
  const double low = axis_y(y_.low), share = (axis_y(y) - low) / (axis_y(y_.high) - low);
  return area.bottom() - share * area.height();
}

double ChartAxes::x_at(QPointF at) const {
  const QRectF a = area();
  const double share = content.options.rows ? (at.y() - a.top()) / a.height() : (at.x() - a.left()) / a.width();
  return link.range().low + share * link.range().size();
}

// Logarithms are shown on a linear axis: QLogValueAxis has labels at whole powers of ten only, hence none between 2 and
// 4. Values far outside are clamped, because painters overflow.
double ChartAxes::axis_y(double y) const {
  if (std::isnan(y)) return y;  // a gap
  const bool logarithmic = is_logarithmic();
  const AxisRange axis = logarithmic ? AxisRange{std::log10(y_.low), std::log10(y_.high)} : y_;
  const double at = !logarithmic ? y : y > 0 ? std::log10(y) : axis.low - 0.1 * axis.size();
  return std::clamp(at, axis.low - 4 * axis.size(), axis.high + 4 * axis.size());
}

AxisRange ChartAxes::wanted_y() const {
  const AxisRange x = link.range();
  double low = INFINITY, high = -INFINITY;
  for (const ChartLine& line : content.lines) {
    if (content.is_hidden(line.name)) continue;
    for (const auto* s : {line.raw.get(), line.smooth.get(), line.low.get(), line.high.get()})
      if (s)
        if (const auto range = s->y_range(x.low, x.high)) {
          low = std::min(low, range->min);
          high = std::max(high, range->max);
        }
  }
  if (content.stack.highest) {
    low = 0;
    high = std::max(high, content.stack.highest(x.low, x.high));
  }
  // The axis includes a level only if the data comes near it; otherwise its label is at the upper edge.
  for (const LevelLine& level : content.levels)
    if (level.value > high && level.value < high * 2.2) high = level.value * 1.08;
  if (content.options.from_zero || content.options.rows) low = std::min(low, 0.0);
  return {low, high};
}

void ChartAxes::update_y() {
  AxisRange wanted = wanted_y();
  if (!(wanted.low <= wanted.high)) {
    y_ = {0, 1};
    return;
  }
  if (content.scale == Scale::logarithmic && wanted.low <= 0) wanted.low = wanted.high > 0 ? wanted.high * 1e-4 : 0;
  const AxisRange room = padded(wanted, content.scale);
  const double low = content.options.from_zero || content.options.rows ? 0 : room.low;
  // Hysteresis: the axis changes only if the data leaves it or fills too little of it.
  const bool inside = wanted.low >= y_.low && wanted.high <= y_.high;
  const bool small = room.high - low < y_.size() * 0.7;
  if (!inside || small || y_.size() <= 0) y_ = {low, room.high};
}

// The left margin fits the widest label and only grows, so that the data does not jitter.
void ChartAxes::fit_margin() {
  if (content.options.rows) return fit_row_margins();
  const QFontMetricsF metrics(small_font());
  double widest = 24;
  for (const Tick& t : y_ticks(area())) widest = std::max(widest, metrics.horizontalAdvance(t.label));
  widest += (size.height() < kTitledHeight ? 0 : title_height()) + kTickPadding + kAir + 3;
  if (widest > left_margin_ || widest < left_margin_ - 14) left_margin_ = std::ceil(widest);
}

std::vector<Tick> ChartAxes::y_ticks(const QRectF& area) const {
  return ticks(y_, std::max(2, static_cast<int>(area.height() / kTickHeight)), content.options.quantity, content.scale);
}

// The longest of its forms that fits along the axis, because Qt Charts would elide it. The ticks of times and bytes
// have units, and what is behind a comma says how the values were taken.
QString ChartAxes::y_title(double room) const {
  const QString unit =
      content.options.quantity == AxisQuantity::plain ? content.options.unit.section(u", "_s, 0, 0) : QString();
  const QString last = content.options.title.section(u' ', -1);
  const QFontMetricsF metrics(small_font());
  for (const QString& form : {unit, content.options.title, unit.section(u' ', 0, 0), capitalized(last)})
    if (!form.isEmpty() && metrics.horizontalAdvance(form) <= room) return form;
  return {};
}

double ChartAxes::row_y(const QRectF& area, double row) const {
  return area.top() + (row - link.range().low) / link.range().size() * area.height();
}

double ChartAxes::value_x(const QRectF& area, double value) const {
  return area.left() + (value - y_.low) / y_.size() * area.width();
}

}  // namespace mw::ui
