// SPDX-License-Identifier: GPL-3.0-or-later
// Controls below the charts: the playhead over steps or time, held or live, and the smoothing. GUI thread.
#pragma once
#include "ui/charts/chart_link.h"
#include "ui/theme/widgets.h"

class QSlider;

namespace mw::ui {

class PlayheadBar : public QWidget {
  Q_OBJECT
 public:
  enum class Controls { all, playhead };  // all: with Live and smoothing, for a run that may be in progress
  PlayheadBar(ChartLink& link, QWidget* parent, Controls controls = Controls::all);
  void set_data(AxisRange range);         // of the x axis
  void set_reading(const QString& text);  // values at the playhead, for tooltip and screen readers
  void step_by(int steps);                // moves the playhead and holds it
  QPushButton& live() { return *live_; }
  QSlider& slider() { return *head_; }
  double smoothing() const;

 signals:
  void smoothing_changed(double weight);

 private:
  void follow_link();
  double scale() const;  // positions of the slider per unit of the x axis
  ChartLink& link_;
  QSlider *head_, *smooth_;
  QLabel *where_, *smooth_label_;
  QPushButton* live_;
};

}  // namespace mw::ui
