// SPDX-License-Identifier: GPL-3.0-or-later
// One metric of every run as a grid of rate by input length: value as colour and number, changes against the baseline
// and marks for audit findings. GUI thread.
#pragma once
#include <QWidget>

#include "core/compare/compare_charts.h"

namespace mw::ui {

class HeatMapView : public QWidget {
  Q_OBJECT
 public:
  struct Grid {
    QString name;
    compare::HeatMap map;
  };
  explicit HeatMapView(QWidget* parent = nullptr);
  void show_grids(std::vector<Grid> grids, views::SweepMetric metric);
  void set_emphasis(int column);
  const std::vector<Grid>& grids() const { return grids_; }
  void paint_whole(QPainter& painter);
  QSize minimumSizeHint() const override { return {200, 120}; }
  QRectF cell_of(size_t grid, size_t row, size_t column) const { return cell_area({grid, row, column}); }

 signals:
  void chosen(int column, int input_len, const QString& load);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Place {
    size_t grid, row, column;
  };
  bool fits_side_by_side() const;  // whether the grids fit side by side; otherwise they are stacked
  void fit_height();
  QRectF grid_area(size_t grid) const;
  QRectF cell_area(const Place& place) const;
  std::optional<Place> at(QPointF position) const;
  QString tooltip_at(QPoint position) const;
  QFont number_font() const;
  void paint_grid(QPainter& painter, size_t grid) const;
  QString cell_text(const compare::HeatMap::Cell& cell) const;
  double share(double value) const;  // 0..1 between the smallest and the largest of all grids, on a log scale

  std::vector<Grid> grids_;
  views::SweepMetric metric_ = views::SweepMetric::ttft;
  double least_ = 0, most_ = 1;
  int emphasis_ = -1;
};

QString metric_text(double value, views::SweepMetric metric);  // "61 ms", "1403", "$4.95"

}  // namespace mw::ui
