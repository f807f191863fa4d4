// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_scene.h"

#include <QGraphicsLayout>
#include <QPainter>
#include <QtCharts/QAreaSeries>
#include <QtCharts/QCategoryAxis>
#include <QtCharts/QChart>
#include <QtCharts/QLegend>
#include <QtCharts/QLineSeries>
#include <QtCharts/QScatterSeries>
#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kMarkPixels = 9;

// The axes of Qt Charts always show 0 to 1, because a change of their range lays out the axis and all series at once,
// before the points are replaced.
double share_of(AxisRange range, double value) {
  return (value - range.low) / range.size();
}

void to_shares(QList<QPointF>& points, AxisRange x, AxisRange y) {
  for (QPointF& point : points) point = {share_of(x, point.x()), share_of(y, point.y())};
}

// Qt Charts ignores points that are NaN, so that a line with gaps is several series.
std::vector<SceneLine> without_gaps(const std::vector<SceneLine>& lines) {
  std::vector<SceneLine> parts;
  for (const SceneLine& line : lines) {
    SceneLine part{.pen = line.pen};
    const auto finish = [&] {
      if (part.points.size() > 1) parts.push_back(part);
      part.points.clear();
    };
    for (const QPointF& point : line.points)
      if (std::isfinite(point.y()))
        part.points << point;
      else
        finish();
    finish();
  }
  return parts;
}

QScatterSeries::MarkerShape shape_of(Marks marks) {
  switch (marks) {
    case Marks::squares:
      return QScatterSeries::MarkerShapeRectangle;
    case Marks::triangles:
      return QScatterSeries::MarkerShapeTriangle;
    case Marks::diamonds:
      return QScatterSeries::MarkerShapeRotatedRectangle;
    case Marks::points:
    case Marks::none:
      return QScatterSeries::MarkerShapeCircle;
  }
  return QScatterSeries::MarkerShapeCircle;
}

bool same(const std::vector<Tick>& a, const std::vector<Tick>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tick& x, const Tick& y) { return x.value == y.value && x.label == y.label; });
}

template <class Series>
void show(Series* series, bool shown) {
  if (series->isVisible() != shown) series->setVisible(shown);
}

// QXYSeries::replace() makes the line and its outline again, even of equal points.
void replace_points(QXYSeries& series, const QList<QPointF>& points) {
  if (series.points() != points) series.replace(points);
}

}  // namespace

ChartScene::ChartScene() : chart_(new QChart), x_(new QCategoryAxis), y_(new QCategoryAxis) {
  scene_.setItemIndexMethod(QGraphicsScene::NoIndex);
  scene_.addItem(chart_);
  chart_->setAnimationOptions(QChart::NoAnimation);
  chart_->setBackgroundVisible(false);
  chart_->setMargins({});
  chart_->legend()->hide();
  chart_->addAxis(x_, Qt::AlignBottom);
  chart_->addAxis(y_, Qt::AlignLeft);
  for (QCategoryAxis* axis : {x_, y_}) {
    axis->setLabelsPosition(QCategoryAxis::AxisLabelsPositionOnValue);
    axis->setTruncateLabels(false);
    axis->setLineVisible(false);
    axis->setRange(0, 1);
  }
}

// False: the axis was like this already.
bool ChartScene::set_axis(QCategoryAxis& axis, std::vector<Tick>& shown, const SceneAxis& wanted) {
  const Theme& t = theme();
  const bool is_like_this =
      axis.labelsFont() == small_font() && axis.labelsBrush() == QBrush(t.muted) && axis.titleText() == wanted.title;
  axis.setLabelsFont(small_font());
  axis.setTitleFont(small_font());
  axis.setLabelsBrush(t.muted);
  axis.setTitleBrush(t.muted);
  axis.setGridLinePen(QPen(mix(t.panel, t.line, t.shade == Shade::dark ? 0.6 : 0.65), 1));
  axis.setTitleText(wanted.title);
  std::vector<Tick> ticks = wanted.ticks;
  for (Tick& tick : ticks) tick.value = share_of(wanted.range, tick.value);
  if (same(shown, ticks)) return !is_like_this;
  shown = std::move(ticks);
  {
    const QSignalBlocker quiet(axis);  // Qt Charts would lay out the axis for each label
    for (const QString& label : axis.categoriesLabels()) axis.remove(label);
    // The first category begins outside, where Qt Charts draws no grid line.
    if (!shown.empty()) axis.setStartValue(std::min(0.0, shown.front().value) - 1);
    QSet<QString> taken;
    for (const Tick& tick : shown) {
      QString label = tick.label;  // labels must differ and not be empty: spaces are added
      while (label.isEmpty() || taken.contains(label)) label += QChar::Nbsp;
      taken.insert(label);
      axis.append(label, tick.value);
    }
  }
  emit axis.categoriesChanged();
  return true;
}

// A new series is above all others, so that all are made again when one is missing. False: none was.
bool ChartScene::reserve(size_t areas, size_t lines, size_t marks) {
  if (areas <= areas_.size() && lines <= lines_.size() && marks <= marks_.size()) return false;
  areas = std::max(areas, areas_.size());
  lines = std::max(lines, lines_.size());
  marks = std::max(marks, marks_.size());
  chart_->removeAllSeries();
  areas_.clear(), lines_.clear(), marks_.clear();
  const auto add = [&](auto* series, auto& all) {
    chart_->addSeries(series);
    series->attachAxis(x_);
    series->attachAxis(y_);
    all.push_back(series);
  };
  for (size_t i = 0; i < areas; ++i) {
    auto* area = new QAreaSeries;
    area->setUpperSeries(new QLineSeries(area));
    area->setLowerSeries(new QLineSeries(area));
    area->setPen(Qt::NoPen);
    add(area, areas_);
  }
  for (size_t i = 0; i < lines; ++i) add(new QLineSeries, lines_);
  for (size_t i = 0; i < marks; ++i) add(new QScatterSeries, marks_);
  return true;
}

void ChartScene::update(SceneItems items, QSizeF size, const QRectF& area) {
  for (SceneArea& each : items.areas)
    for (QList<QPointF>* points : {&each.upper, &each.lower}) to_shares(*points, items.x.range, items.y.range);
  for (SceneLine& each : items.lines) to_shares(each.points, items.x.range, items.y.range);
  for (SceneMarks& each : items.marks) to_shares(each.points, items.x.range, items.y.range);
  const std::vector<SceneLine> lines = without_gaps(items.lines);
  bool needs_layout = reserve(items.areas.size(), lines.size(), items.marks.size());
  needs_layout |= chart_->size() != size || area != area_;
  if (chart_->size() != size) chart_->resize(size);
  needs_layout |= set_axis(*x_, x_ticks_, items.x);
  needs_layout |= set_axis(*y_, y_ticks_, items.y);
  for (size_t i = 0; i < areas_.size(); ++i) {
    show(areas_[i], i < items.areas.size());
    if (i >= items.areas.size()) continue;
    replace_points(*areas_[i]->upperSeries(), items.areas[i].upper);
    replace_points(*areas_[i]->lowerSeries(), items.areas[i].lower);
    areas_[i]->setBrush(items.areas[i].brush);
  }
  for (size_t i = 0; i < lines_.size(); ++i) {
    show(lines_[i], i < lines.size());
    if (i >= lines.size()) continue;
    replace_points(*lines_[i], lines[i].points);
    lines_[i]->setPen(lines[i].pen);
  }
  for (size_t i = 0; i < marks_.size(); ++i) {
    show(marks_[i], i < items.marks.size());
    if (i >= items.marks.size()) continue;
    marks_[i]->setMarkerShape(shape_of(items.marks[i].shape));
    marks_[i]->setMarkerSize(kMarkPixels);
    marks_[i]->setColor(items.marks[i].color);
    marks_[i]->setBorderColor(theme().panel);
    replace_points(*marks_[i], items.marks[i].points);
  }
  if (!needs_layout) return;  // it makes all labels again, which are documents, and takes longer than the series
  area_ = area;
  chart_->setPlotArea(area);
  chart_->layout()->invalidate();  // the next event would do this, after paint()
  chart_->layout()->activate();
}

void ChartScene::paint(QPainter& painter) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF all(QPointF(), chart_->size());
  scene_.render(&painter, all, all);
  painter.restore();
}

}  // namespace mw::ui
