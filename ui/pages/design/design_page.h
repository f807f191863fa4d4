// SPDX-License-Identifier: GPL-3.0-or-later
// The Design page: mesh canvas, sharding of every tensor, memory of a device, figures of the plan and alternatives,
// each compared with the pinned design if there is one. Shows predictions; edits go to the document. GUI thread.
#pragma once
#include <QElapsedTimer>

#include "ui/pages/design/alternatives.h"
#include "ui/pages/design/calibrate_dialog.h"
#include "ui/pages/design/canvas_pair.h"
#include "ui/pages/design/cost_view.h"
#include "ui/pages/design/design_tables.h"
#include "ui/pages/design/figure_strip.h"
#include "ui/pages/design/memory_panel.h"
#include "ui/pages/design/proof_window.h"
#include "ui/pages/design/residuals_dialog.h"
#include "ui/session/predictor.h"
#include "ui/session/shared_plan_context.h"
#include "ui/session/workspace.h"
#include "ui/theme/widgets.h"

class QTableView;
class QTabWidget;

namespace mw::ui {

class DesignPage : public QWidget, public WindowPage {
  Q_OBJECT
 public:
  DesignPage(Document& document, Predictor& predictor, SharedPlanContext& context, QWidget* parent = nullptr);
  void attach(Workspace& workspace) override;
  void update_actions() override;
  void show_frame() override;
  void restyle() override;
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  QString subcommand() const override { return QStringLiteral("plan"); }
  ErrorLink* prediction_errors() override { return errors_; }
  QStringList unfinished_work() const override;
  void stop_work() override { proof_window_->task().cancel(); }
  CalibrateDialog& calibrate_dialog() { return *calibrate_; }
  ResidualsDialog& residuals_dialog() { return *residuals_; }
  ProofWindow& proof_window() { return *proof_window_; }
  PlanModel& plan() { return plan_; }
  ShardsModel& shards() { return shards_; }
  QTableView& shards_table() { return *shards_table_; }
  CanvasPair& canvases() { return *canvases_; }
  MeshCanvas& canvas() { return canvases_->live(); }
  MeasuredSwitch& measured() { return *measured_; }  // the planned mesh or the measured one of a run
  MemoryPanel& memory() { return *memory_; }
  Alternatives& alternatives() { return *alternatives_; }
  CostView& cost() { return *cost_; }
  Chart& time_chart() { return *time_; }
  FigureStrip& figures() { return *figures_; }
  QTabWidget& tabs() { return *tabs_; }  // memory, plan, alternatives, total cost
  void pin();                            // keeps the displayed design for comparison
  void unpin();
  void select_tensor(const QString& name);  // logical name, of any layer
  void swap_pinned();                       // applies the pinned design in one undo step and pins the displayed one
  void set_meshes(Meshes meshes);
  ErrorLink& error_link() { return *errors_; }
  bool has_pinned() const { return pinned_ != nullptr; }

 private:
  void register_actions(Workspace& workspace);
  void prove(const NamedExperiment& experiment);
  void prove_again();
  store::RunId run_with_residuals() const;  // selected or displayed; empty: none
  void build();
  QWidget* header();
  QWidget* plan_panel();
  QTableView* table(QAbstractTableModel& model, const QString& name);
  bool is_prediction_late();
  void update_all();
  void show_nothing();
  void update_columns();
  void set_spec(const QString& tensor, const QString& spec);
  void wire_canvas();
  void set_pinned(const views::DesignPtr& design);  // may be null
  void show_pins();
  void show_pin_buttons();
  void add_column_menu();
  void show_change(const std::vector<views::PlanLine>& lines);

  Document& document_;
  Predictor& predictor_;
  SharedPlanContext& context_;
  Calibrator calibrator_;
  CalibrateDialog* calibrate_ = nullptr;
  ResidualsDialog* residuals_ = nullptr;
  ProofWindow* proof_window_ = nullptr;
  store::RunId proved_run_;                  // of the last proof; empty: from the form
  views::DesignPtr shown_, pinned_, given_;  // given_: the latest that is no preview
  std::vector<views::PlanLine> pinned_lines_;
  std::vector<views::ShardRow> pinned_rows_;
  bool changed_ = true;     // everything must be updated
  views::DesignPtr drawn_;  // the displayed prediction
  QElapsedTimer outdated_for_;
  bool dimmed_ = false;
  bool no_prediction_ = false;    // there is no prediction to show
  bool pinned_is_other_ = false;  // the pinned design belongs to a document that was replaced
  PlanModel plan_;
  ShardsModel shards_;
  QSplitter *columns_, *rows_;
  QTabWidget* tabs_;
  FigureStrip* figures_;
  QLabel *title_, *pinned_title_;
  ErrorLink* errors_;
  QPushButton *prove_, *pin_, *both_, *swap_;
  CanvasPair* canvases_;
  MeasuredSwitch* measured_;
  MemoryPanel* memory_;
  ChartLink time_link_;
  Chart* time_;
  Alternatives* alternatives_;
  CostView* cost_;
  QTableView *plan_table_, *shards_table_;
};

}  // namespace mw::ui
