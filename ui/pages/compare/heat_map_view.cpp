// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/heat_map_view.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/charts/ticks.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr double kTitle = 24, kRows = 46, kColumns = 18, kMapGap = 14, kLeastCell = 19, kLeastWidth = 52;
}

QString metric_text(double value, views::SweepMetric metric) {
  if (!std::isfinite(value)) return {};
  if (metric == views::SweepMetric::cost) return u"$"_s + QString::number(value, 'f', 2);
  return value_text(value, views::is_latency(metric) ? Quantity::seconds : Quantity::plain);
}

HeatMapView::HeatMapView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Heat map of rate and input length"));
}

void HeatMapView::show_grids(std::vector<Grid> grids, views::SweepMetric metric) {
  grids_ = std::move(grids);
  metric_ = metric;
  least_ = INFINITY, most_ = 0;
  for (const Grid& g : grids_)
    for (const auto& cell : g.map.cells)
      if (cell.value > 0) least_ = std::min(least_, cell.value), most_ = std::max(most_, cell.value);
  fit_height();
  update();
}

void HeatMapView::set_emphasis(int column) {
  if (column == emphasis_) return;
  emphasis_ = column;
  update();
}

double HeatMapView::share(double value) const {
  if (!(value > 0) || !(most_ > least_)) return 0.5;
  return std::log(value / least_) / std::log(most_ / least_);
}

bool HeatMapView::fits_side_by_side() const {
  if (grids_.size() < 2) return true;
  const double n = static_cast<double>(grids_.size()), columns = static_cast<double>(grids_[0].map.loads.size());
  return (width() - kMapGap * (n - 1)) / n - kRows >= columns * kLeastWidth;
}

// Scrolls if the page is too small to show every number.
void HeatMapView::fit_height() {
  const double rows = grids_.empty() ? 0 : static_cast<double>(grids_[0].map.lens.size());
  const double n = fits_side_by_side() ? 1 : static_cast<double>(grids_.size());
  setMinimumHeight(std::max(120, static_cast<int>(n * (kTitle + kColumns + rows * kLeastCell) + kMapGap * (n - 1))));
}

void HeatMapView::resizeEvent(QResizeEvent*) {
  fit_height();
}

QRectF HeatMapView::grid_area(size_t grid) const {
  const double n = static_cast<double>(std::max<size_t>(1, grids_.size()));
  const bool across = fits_side_by_side();
  const double w = across ? (width() - kMapGap * (n - 1)) / n : width();
  const double h = across ? height() : (height() - kMapGap * (n - 1)) / n;
  const double g = static_cast<double>(grid);
  return {across ? g * (w + kMapGap) : 0, across ? 0 : g * (h + kMapGap), w, h};
}

QRectF HeatMapView::cell_area(const Place& p) const {
  const auto& map = grids_[p.grid].map;
  const QRectF a = grid_area(p.grid).adjusted(kRows, kTitle, -2, -kColumns);
  const double w = a.width() / static_cast<double>(map.loads.size()),
               h = a.height() / static_cast<double>(map.lens.size());
  return {a.left() + w * static_cast<double>(p.column), a.top() + h * static_cast<double>(p.row), w, h};
}

std::optional<HeatMapView::Place> HeatMapView::at(QPointF position) const {
  for (size_t g = 0; g < grids_.size(); ++g)
    for (size_t r = 0; r < grids_[g].map.lens.size(); ++r)
      for (size_t c = 0; c < grids_[g].map.loads.size(); ++c)
        if (cell_area({g, r, c}).contains(position)) return Place{g, r, c};
  return std::nullopt;
}

QString HeatMapView::cell_text(const compare::HeatMap::Cell& cell) const {
  QString text = metric_text(cell.value, metric_);
  if (std::isfinite(cell.change)) text += u"\n"_s + delta_text(cell.change);
  return text;
}

// The font fits the widest number into the narrowest cell, down to a readable size.
QFont HeatMapView::number_font() const {
  constexpr double kSmallest = 0.75;
  QFont font = small_font();
  if (grids_.empty() || grids_[0].map.lens.empty()) return font;
  const double room = cell_area({0, 0, 0}).width() - 4;
  double widest = 0;
  for (const Grid& g : grids_)
    for (const auto& cell : g.map.cells)
      widest = std::max(widest, QFontMetricsF(font).size(0, cell_text(cell)).width());
  if (widest > room) font.setPointSizeF(font.pointSizeF() * std::max(kSmallest, room / widest));
  return font;
}

void HeatMapView::paint_grid(QPainter& painter, size_t g) const {
  const Theme& t = theme();
  const Grid& grid = grids_[g];
  const QRectF whole = grid_area(g);
  painter.setOpacity(emphasis_ < 0 || emphasis_ == static_cast<int>(g) ? 1 : 0.4);
  const QFont bold = demi_bold(small_font());
  painter.setFont(bold);
  painter.setPen(t.series(static_cast<int>(g)));
  painter.drawText(QRectF(whole.left() + 4, whole.top(), whole.width() - 8, kTitle), Qt::AlignVCenter,
                   QFontMetricsF(bold).elidedText(grid.name, Qt::ElideMiddle, whole.width() - 8));
  const QFont numbers = number_font();
  const QFontMetricsF metrics(numbers);
  for (size_t r = 0; r < grid.map.lens.size(); ++r) {
    const QRectF first = cell_area({g, r, 0});
    painter.setPen(t.muted);
    painter.setFont(small_font());
    painter.drawText(QRectF(whole.left(), first.top(), kRows - 6, first.height()), Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(grid.map.lens[r]));
    painter.setFont(numbers);
    for (size_t c = 0; c < grid.map.loads.size(); ++c) {
      const auto& cell = grid.map.at(r, c);
      const QRectF at = cell_area({g, r, c}).adjusted(1, 1, -1, -1);
      const bool known = std::isfinite(cell.value);
      painter.fillRect(at,
                       known ? mix(t.panel, t.accent, 0.06 + 0.46 * share(cell.value)) : mix(t.panel, t.line, 0.25));
      if (!known) continue;
      if (!cell.mark.empty()) {
        painter.setPen(QPen(cell.verdict == serve::Verdict::impossible ? t.bad : t.warn, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(at.adjusted(1, 1, -1, -1));
      }
      painter.setPen(t.text);
      const QString text = cell_text(cell);
      if (at.height() >= metrics.height() * 2 || !text.contains(u'\n'))
        painter.drawText(at, Qt::AlignCenter, text);
      else
        painter.drawText(at, Qt::AlignCenter, text.section(u'\n', 0, 0));
    }
  }
  constexpr double kBesideLabel = 4, kAside = 8;  // largest offset of a label from the middle of its column
  const QFontMetricsF font(small_font());
  painter.setFont(small_font());
  double taken = -1;
  for (size_t c = 0; c < grid.map.loads.size() && !grid.map.lens.empty(); ++c) {
    const QRectF at = cell_area({g, grid.map.lens.size() - 1, c});
    QString label = qs(grid.map.labels[c]);
    const bool last = c + 1 == grid.map.loads.size();  // the last column
    if (last) label = font.elidedText(label, Qt::ElideRight, whole.right() - std::max(taken, at.left()));
    const double w = font.horizontalAdvance(label);
    const double middle = at.center().x() - w / 2;
    const double left = std::clamp(std::max(middle, taken), whole.left(), std::max(whole.left(), whole.right() - w));
    if (left < taken || (left > middle + kAside && !last)) continue;
    taken = left + w + kBesideLabel;
    painter.setPen(t.muted);
    painter.drawText(QPointF(left, at.bottom() + 13), label);
  }
  painter.setOpacity(1);
}

void HeatMapView::paint_whole(QPainter& painter) {
  painter.fillRect(rect(), theme().panel);
  if (grids_.empty()) {
    painter.setPen(theme().faint);
    painter.drawText(rect(), Qt::AlignCenter, tr("Sweeps and imported results are shown here"));
    return;
  }
  for (size_t g = 0; g < grids_.size(); ++g) paint_grid(painter, g);
}

void HeatMapView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint_whole(painter);
}

void HeatMapView::mousePressEvent(QMouseEvent* event) {
  if (const auto p = at(event->position()))
    emit chosen(static_cast<int>(p->grid), grids_[p->grid].map.lens[p->row], qs(grids_[p->grid].map.loads[p->column]));
}

QString HeatMapView::tooltip_at(QPoint position) const {
  const auto p = at(position);
  if (!p) return {};
  const auto& map = grids_[p->grid].map;
  const auto& cell = map.at(p->row, p->column);
  QString text = tr("<b>%1</b>, %2 tokens, %3<br>%4: %5")
                     .arg(grids_[p->grid].name.toHtmlEscaped())
                     .arg(map.lens[p->row])
                     .arg(qs(map.loads[p->column]), qs(views::label_of(metric_)),
                          std::isfinite(cell.value) ? cell_text(cell).replace(u'\n', u' ') : tr("not recorded"));
  if (!cell.mark.empty()) text += u"<br>"_s + qs(cell.mark).toHtmlEscaped();
  return text;
}

bool HeatMapView::event(QEvent* event) {
  return show_tooltip(event, *this, [this](QPoint position) { return tooltip_at(position); }) || QWidget::event(event);
}

}  // namespace mw::ui
