// SPDX-License-Identifier: GPL-3.0-or-later
// Timeline of every request of a point, one row each by arrival: waiting in the client, queued, prefill, decode. Paints
// only the visible rows. GUI thread.
#pragma once
#include <QAbstractScrollArea>

#include "core/views/sweep_view.h"
#include "ui/charts/chart_link.h"

namespace mw::ui {

class RequestTimeline : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit RequestTimeline(ChartLink& link, QWidget* parent = nullptr);
  void show_point(const formats::BenchPoint* point, const QString& title);  // null: none
  int requests() const { return static_cast<int>(rows_.size()); }
  int painted_rows() const { return painted_; }  // in the last paint event
  QString row_text(int row) const;
  double row_height() const;
  QSize minimumSizeHint() const override { return {160, 90}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  struct Row {
    views::RequestPhases phases;
    int prompt = 0, output = 0, cached = 0, preemptions = 0;
    std::string error;
  };
  QRectF area() const;
  double to_x(double seconds) const;
  int row_at(double y) const;
  void fit();
  void paint_header(QPainter& painter) const;
  void paint_row(QPainter& painter, const Row& row, double top, double height) const;

  ChartLink& link_;
  QString title_;
  std::vector<Row> rows_;
  bool queue_known_ = false;
  int painted_ = 0;
};

}  // namespace mw::ui
