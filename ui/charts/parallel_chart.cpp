// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/parallel_chart.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr double kTitleRow = 34, kFoot = 10, kMostDistance = 8;  // pixels; distance from a line that still points at it
constexpr double kSide = 12;                                     // beside the first axis and the last one

// Distance of a point from the segment between two others.
double distance_from(QPointF at, QPointF from, QPointF to) {
  const QPointF along = to - from;
  const double length = QPointF::dotProduct(along, along);
  const double share = length > 0 ? std::clamp(QPointF::dotProduct(at - from, along) / length, 0.0, 1.0) : 0;
  const QPointF off = at - (from + share * along);
  return std::hypot(off.x(), off.y());
}

}  // namespace

ParallelChart::ParallelChart(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Chart);
  setAccessibleName(tr("Settings and results of the runs in parallel coordinates"));
}

void ParallelChart::show_runs(std::vector<views::ParallelAxis> axes, QStringList names) {
  axes_ = std::move(axes);
  names_ = std::move(names);
  if (emphasis_ >= names_.size()) emphasis_ = -1;
  setAccessibleDescription(summary());
  update();
}

void ParallelChart::set_emphasis(int run) {
  if (run == emphasis_) return;
  emphasis_ = run;
  setAccessibleDescription(summary());
  update();
}

QString ParallelChart::place_text(int run, const views::ParallelAxis& axis) const {
  const auto place = axis.places[static_cast<size_t>(run)];
  if (!place) return tr("not recorded");
  for (const auto& stop : axis.stops)
    if (std::abs(stop.place - *place) < 1e-9) return qs(stop.text);
  return tr("%1 % of the axis").arg(std::lround(100 * *place));
}

QString ParallelChart::summary() const {
  if (axes_.empty()) return tr("Add runs with different settings to see them here");
  QStringList parts;
  for (const views::ParallelAxis& axis : axes_)
    parts << (emphasis_ < 0 ? qs(axis.label) : tr("%1: %2").arg(qs(axis.label), place_text(emphasis_, axis)));
  return emphasis_ < 0 ? tr("%n run(s) over %1", nullptr, static_cast<int>(names_.size())).arg(parts.join(u", "_s))
                       : tr("%1; %2").arg(names_[emphasis_], parts.join(u", "_s));
}

QRectF ParallelChart::area() const {
  return QRectF(rect()).adjusted(kSide, kTitleRow, -kSide, -kFoot);
}

// Each axis has the room to its right for its texts; the last one has as much.
double ParallelChart::axis_x(int axis) const {
  const QRectF all = area();
  return all.left() + all.width() * axis / std::max<double>(1, static_cast<double>(axes_.size()));
}

QPointF ParallelChart::point_of(int run, int axis) const {
  const auto place = axes_[static_cast<size_t>(axis)].places[static_cast<size_t>(run)];
  if (!place) return {};
  const QRectF all = area();
  return {axis_x(axis), all.bottom() - *place * all.height()};
}

int ParallelChart::run_at(QPointF at) const {
  int nearest = -1;
  double least = kMostDistance;
  for (int run = 0; run < names_.size(); ++run)
    for (int axis = 0; axis + 1 < static_cast<int>(axes_.size()); ++axis) {
      const QPointF from = point_of(run, axis), to = point_of(run, axis + 1);
      if (from.isNull() || to.isNull()) continue;
      if (const double distance = distance_from(at, from, to); distance < least) {
        least = distance;
        nearest = run;
      }
    }
  return nearest;
}

void ParallelChart::paintEvent(QPaintEvent*) {
  QPainter p(this);
  p.fillRect(rect(), theme().panel);
  p.setRenderHint(QPainter::Antialiasing);
  p.setFont(small_font());
  if (axes_.empty()) {
    p.setPen(theme().muted);
    p.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, summary());
    return paint_edge(p, *this);
  }
  for (int run = 0; run < names_.size(); ++run)
    if (run != emphasis_) paint_run(p, run);
  if (emphasis_ >= 0) paint_run(p, emphasis_);
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) paint_axis(p, axis);
  paint_edge(p, *this);
}

void ParallelChart::paint_run(QPainter& p, int run) const {
  const bool is_faded = emphasis_ >= 0 && run != emphasis_;
  const QColor color = theme().series(run);
  p.setPen(QPen(is_faded ? mix(theme().panel, color, 0.25) : color, run == emphasis_ ? 2.5 : 1.5));
  QPolygonF line;
  const auto finish = [&] {
    if (line.size() > 1) p.drawPolyline(line);
    line.clear();
  };
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
    const QPointF at = point_of(run, axis);
    if (at.isNull()) {
      finish();
      continue;
    }
    line << at;
    p.drawEllipse(at, 2, 2);
  }
  finish();
}

void ParallelChart::paint_axis(QPainter& p, int index) const {
  const views::ParallelAxis& axis = axes_[static_cast<size_t>(index)];
  const QRectF all = area();
  const double x = axis_x(index), room = all.width() / static_cast<double>(axes_.size()) - 6;
  p.setPen(QPen(axis.is_result ? theme().text : theme().muted, 1));
  p.drawLine(QPointF(x, all.top()), QPointF(x, all.bottom()));
  p.setFont(axis.is_result ? demi_bold(small_font()) : small_font());
  p.setPen(theme().text);
  const QFontMetricsF metrics(p.font());
  p.drawText(QPointF(x, metrics.ascent() + 2), metrics.elidedText(qs(axis.label), Qt::ElideRight, room));
  const QString unit = axis.is_log ? tr("log %1").arg(qs(axis.unit)).trimmed() : qs(axis.unit);
  p.setFont(small_font());
  p.setPen(theme().muted);
  p.drawText(QPointF(x, 2 * metrics.ascent() + 5), metrics.elidedText(unit, Qt::ElideRight, room));
  double lowest_free = all.bottom() + metrics.height();  // texts that would overlap are left out, from below
  for (const auto& stop : axis.stops) {
    const double y = all.bottom() - stop.place * all.height();
    p.drawLine(QPointF(x - 3, y), QPointF(x + 3, y));
    const double baseline = std::clamp(y + metrics.ascent() / 2 - 1, all.top() + metrics.ascent(), all.bottom());
    if (baseline > lowest_free - metrics.ascent()) continue;
    p.drawText(QPointF(x + 6, baseline), metrics.elidedText(qs(stop.text), Qt::ElideRight, room - 6));
    lowest_free = baseline - metrics.descent();
  }
}

void ParallelChart::hover(int run) {
  if (run == emphasis_) return;
  set_emphasis(run);
  setToolTip(run < 0 ? QString() : summary());
  emit run_hovered(run);
}

void ParallelChart::mouseMoveEvent(QMouseEvent* event) {
  hover(run_at(event->position()));
}

void ParallelChart::keyPressEvent(QKeyEvent* event) {
  const int count = static_cast<int>(names_.size());
  if (count > 0 && event->key() == Qt::Key_Down) return hover((emphasis_ + 1) % count);
  if (count > 0 && event->key() == Qt::Key_Up) return hover((std::max(emphasis_, 0) + count - 1) % count);
  if (event->key() == Qt::Key_Escape && emphasis_ >= 0) return hover(-1);
  QWidget::keyPressEvent(event);
}

}  // namespace mw::ui

#include "moc_parallel_chart.cpp"
