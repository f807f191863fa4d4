// SPDX-License-Identifier: GPL-3.0-or-later
// Below the charts: the playhead of all of them, following, and how the loss is smoothed.
#pragma once
#include <QWidget>

#include "ui/plot/link.h"

class QCheckBox;
class QLabel;
class QSlider;

namespace mw::ui {

class PlayheadBar : public QWidget {
  Q_OBJECT
 public:
  PlayheadBar(PlotLink& link, QWidget* parent);
  void set_data(Span steps);
  double smoothing() const;

 signals:
  void smoothing_changed(double weight);

 private:
  void follow_link();
  PlotLink& link_;
  QSlider *head_, *smooth_;
  QLabel *where_, *smooth_label_;
  QCheckBox* follow_;
};

}  // namespace mw::ui
