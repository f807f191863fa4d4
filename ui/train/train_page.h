// SPDX-License-Identifier: GPL-3.0-or-later
// The Train page: one run, live or finished, from its events alone.
#pragma once
#include <QWidget>

#include "ui/plot/plot.h"
#include "ui/train/playhead_bar.h"
#include "ui/train/record_view.h"
#include "ui/train/run_header.h"
#include "ui/train/samples_model.h"

class QPushButton;
class QSplitter;
class QStackedWidget;
class QTableView;
class QTabWidget;

namespace mw::ui {

class TrainPage : public QWidget {
  Q_OBJECT
 public:
  TrainPage(RunController& runs, QWidget* parent = nullptr);
  void show_frame();  // redraw what changed since the last one
  void restyle();     // after a theme change
  PlotLink& link() { return by_step_; }
  Plot& loss() { return *loss_; }
  Plot& memory() { return *memory_; }
  Plot& speed() { return *speed_; }
  Plot& rate() { return *rate_; }
  Plot& gradient() { return *gradient_; }
  RunHeader& header() { return *header_; }
  SamplesModel& samples() { return samples_model_; }
  RecordView& record() { return *record_; }
  void show_record_tab();
  void show_samples_tab();
  QByteArray save_layout() const;
  void restore_layout(const QByteArray& state);

 signals:
  void run_wanted();  // from the empty page
  void runs_wanted();

 private:
  void build();
  QWidget* empty_page();
  void adopt();          // another run
  void rebind();         // lines point at the run's series
  void steps_to_time();  // the memory chart runs over time: cursors are translated both ways
  void time_to_steps();
  void show_samples();  // as many as there are by now
  void select_samples();

  RunController& runs_;
  PlotLink by_step_, by_time_;
  RunPtr run_;
  bool changed_ = true, translating_ = false;
  SamplesModel samples_model_;
  QStackedWidget* stack_;
  RunHeader* header_;
  Plot *loss_, *memory_, *speed_, *rate_, *gradient_;
  QSplitter *rows_, *upper_;
  QTabWidget* lower_;
  QTableView* samples_;
  RecordView* record_;
  PlayheadBar* playhead_;
};

}  // namespace mw::ui
