// SPDX-License-Identifier: GPL-3.0-or-later
// Where a chart draws its data: the area inside its margins, and the range of values of the visible data. GUI thread.
#pragma once
#include <QPointF>
#include <QRectF>

#include "ui/charts/chart_data.h"
#include "ui/charts/chart_link.h"

namespace mw::ui {

class ChartAxes {
 public:
  static constexpr double kRight = 14, kCaption = 15;  // the caption: height of its row
  static constexpr double kTickOverhang = 5;  // of the highest tick label, below a caption or a second legend row
  static constexpr double kAir = 5;           // pixels beside the data in which marks at its edges are whole
  ChartAxes(const ChartContent& shown, const ChartLink& x) : content(shown), link(x) {}
  const ChartContent& content;
  const ChartLink& link;  // the x axis, or that of the rows
  QSizeF size{};          // of the chart
  int legend_rows = 1;

  void update();                    // fits values and margins to the visible data
  void forget_y() { y_ = {0, 0}; }  // the next update() fits the values anew
  QRectF area() const;              // of the data, in coordinates of the chart
  double below() const;             // height of what is below the area
  double left_margin() const { return left_margin_; }
  double right_margin() const { return right_margin_; }
  AxisRange y() const { return y_; }
  bool is_logarithmic() const { return content.scale == Scale::logarithmic && y_.low > 0; }
  double x_at(QPointF at) const;
  double to_x(const QRectF& area, double x) const;
  double to_y(const QRectF& area, double y) const;
  double axis_y(double y) const;                       // on the axis of Qt Charts, which is linear
  double row_y(const QRectF& area, double row) const;  // of a chart of rows
  double value_x(const QRectF& area, double value) const;
  std::vector<Tick> y_ticks(const QRectF& area) const;
  QString y_title(double room) const;  // pixels

 private:
  AxisRange wanted_y() const;
  void update_y();
  void fit_margin();
  void fit_row_margins();
  AxisRange y_{0, 1};
  double left_margin_ = 40, right_margin_ = kRight;
};

}  // namespace mw::ui
