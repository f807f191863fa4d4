// SPDX-License-Identifier: GPL-3.0-or-later
// The Train page: one live or finished run, built from its events. GUI thread.
#pragma once
#include "ui/pages/train/collectives_panel.h"
#include "ui/pages/train/device_memory_view.h"
#include "ui/pages/train/record_view.h"
#include "ui/pages/train/samples_view.h"
#include "ui/pages/train/train_dialogs.h"
#include "ui/run_views/measured_mesh.h"
#include "ui/run_views/playhead_bar.h"
#include "ui/run_views/run_header.h"

class QStackedWidget;
class QTabWidget;

namespace mw::ui {

class TrainPage : public QWidget, public WindowPage {
  Q_OBJECT
 public:
  TrainPage(RunController& runs, QWidget* parent = nullptr);
  void attach(Workspace& workspace) override;
  void update_actions() override;
  void show_frame() override;  // redraws what changed since the last frame
  void follow();               // updates the playhead and what it reads, also while the page is hidden
  void restyle() override;
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  bool follow_newest() override;
  std::optional<RunKind> run_kind() const override { return RunKind::train; }
  RunPtr shown_run() const override { return run_; }
  std::optional<NamedExperiment> provable_run() const override;
  QStringList unfinished_work() const override { return dialogs_->unfinished_work(); }
  void stop_work() override { dialogs_->stop_work(); }
  TrainDialogs& dialogs() { return *dialogs_; }
  ChartLink& link() { return by_step_; }
  ChartLink& times() { return by_time_; }
  const RunPtr& run() const { return run_; }
  bool offers_proof() const;                                         // of the displayed run
  const views::StepSnapshot& snapshot() const { return snapshot_; }  // values at the position of the charts
  MeasuredMesh::PlayheadMode playhead_mode() const;
  Chart& loss() { return *loss_; }
  Chart& memory() { return memory_->chart(); }
  DeviceMemoryView& devices() { return *memory_; }
  CollectivesPanel& collectives() { return *collectives_; }
  MeasuredMesh& measured_mesh() { return *mesh_; }
  PlayheadBar& bar() { return *playhead_; }
  Chart& speed() { return *speed_; }
  Chart& rate() { return *rate_; }
  Chart& gradient() { return *gradient_; }
  Chart& answers() { return *answers_; }
  Chart& budget() { return *budget_; }
  QTabWidget& views() { return *views_; }  // on a mesh: speed, rate and norm; collectives; mesh
  QFrame& banner() { return *banner_; }
  RunHeader& header() { return *header_; }
  SamplesView& samples() { return *samples_; }
  RecordView& record() { return *record_; }
  QTabWidget& tabs() { return *lower_; }  // samples and record

 signals:
  void snapshot_changed();

 private:
  void register_chart_actions(Workspace& workspace);
  void build();
  QLayout* build_top();
  QFrame* build_banner();
  void show_buttons();
  void look_for_adapter();  // of the run that has ended
  void show_banner();       // if the form shows another experiment than the run
  void connect_charts();
  void adopt();   // another run
  void rebind();  // updates the series that the charts refer to
  using ConvertPosition = std::optional<double> (*)(const views::RunView& run, double position);
  void follow_axis(ChartLink& from, ChartLink& to, ConvertPosition convert);  // after a move of the cursor on one axis
  void update_snapshot();
  views::Playhead reading() const;
  void arrange();  // for one device or a mesh
  void place_small(int columns);

  RunController& runs_;
  TrainDialogs* dialogs_ = nullptr;  // created by attach()
  ChartLink by_step_, by_time_;
  RunPtr run_;
  bool changed_ = true, unread_ = true, translating_ = false, compare_form_ = true;
  bool by_instant_ = false;  // the playhead was set in the memory chart, not at a step
  QStackedWidget* stack_;
  RunHeader* header_;
  QPushButton *prove_, *export_, *launch_, *resume_, *detach_, *merge_;
  std::optional<bool> mergeable_;  // whether the run has an adapter; empty: not asked for yet
  QFrame* banner_;
  ElidedLabel* banner_text_;
  Chart *loss_, *speed_, *rate_, *gradient_, *answers_, *budget_;
  static constexpr int kSmallCharts = 5;
  QGridLayout* small_;          // of the charts but loss and memory
  std::vector<Chart*> placed_;  // in small_, in order
  int small_columns_ = 0;
  DeviceMemoryView* memory_;
  CollectivesPanel* collectives_;
  MeasuredMesh* mesh_;
  views::StepSnapshot snapshot_;
  QSplitter *rows_, *upper_, *below_;
  QTabWidget *views_, *lower_;
  SamplesView* samples_;
  RecordView* record_;
  PlayheadBar* playhead_;
};

}  // namespace mw::ui
