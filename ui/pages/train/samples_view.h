// SPDX-License-Identifier: GPL-3.0-or-later
// The samples of a run by step, and the chosen one in detail. Follows and moves the playhead of the charts. GUI thread.
#pragma once
#include <QSplitter>
#include <QTextEdit>

#include "ui/charts/chart_link.h"
#include "ui/session/run_controller.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

// One answer in full: prompt, expected, answer and their difference.
class SampleDetail : public QTextEdit {
  Q_OBJECT
 public:
  explicit SampleDetail(QWidget* parent = nullptr);
  void show_sample(const views::SampleShown& sample);

 protected:
  void keyPressEvent(QKeyEvent* event) override;  // Escape closes it
};

// The outputs for held-out prompts by step, newest first.
class SamplesModel : public TableModel<views::SampleShown> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::SamplesModel)
 public:
  enum Column { step, verdict, prompt, answer, expected };
  SamplesModel();
  void show_run(RunPtr run);
  void grow();  // rows were added (or the run rewound)
  const views::SampleShown& row(int at) const override;
  long step_of(int at) const { return row(at).step; }

 private:
  int size() const override { return shown_; }
  RunPtr run_;
  int shown_ = 0;
};

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
