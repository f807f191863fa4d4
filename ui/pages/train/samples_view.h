// SPDX-License-Identifier: GPL-3.0-or-later
// The samples of a run by step, and the chosen one in detail. Follows and moves the playhead of the charts. GUI thread.
#pragma once
#include <QSplitter>

#include "ui/charts/chart_link.h"
#include "ui/pages/train/sample_detail.h"
#include "ui/pages/train/samples_model.h"

class QTableView;

namespace mw::ui {

class SamplesView : public QSplitter {
  Q_OBJECT
 public:
  SamplesView(ChartLink& steps, QWidget* parent = nullptr);
  void show_run(const RunPtr& run);
  void grow();             // shows new samples
  void follow_playhead();  // selects its samples
  SamplesModel& rows() { return rows_; }
  SampleDetail& detail() { return *detail_; }

 private:
  void open(int row);
  ChartLink& steps_;
  RunPtr run_;
  SamplesModel rows_;
  QTableView* table_;
  SampleDetail* detail_;
};

}  // namespace mw::ui
