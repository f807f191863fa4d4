// SPDX-License-Identifier: GPL-3.0-or-later
// Controls below the charts: the playhead, held or live, and the smoothing. GUI thread.
#pragma once
#include <QWidget>

#include "ui/charts/chart_link.h"

class QLabel;
class QPushButton;
class QSlider;

namespace mw::ui {

class PlayheadBar : public QWidget {
  Q_OBJECT
 public:
  PlayheadBar(ChartLink& link, QWidget* parent);
  void set_data(Span steps);
  void set_reading(const QString& text);  // values at the playhead, for tooltip and screen readers
  void step_by(int steps);                // moves the playhead and holds it
  QPushButton& live() { return *live_; }
  QSlider& slider() { return *head_; }
  double smoothing() const;

 signals:
  void smoothing_changed(double weight);

 private:
  void follow_link();
  ChartLink& link_;
  QSlider *head_, *smooth_;
  QLabel *where_, *smooth_label_;
  QPushButton* live_;
};

}  // namespace mw::ui
