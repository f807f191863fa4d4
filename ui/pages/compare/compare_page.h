// SPDX-License-Identifier: GPL-3.0-or-later
// The Compare page: a tray of runs and results with the first as baseline, the validity of the comparison, a table of
// the differences, and charts. GUI thread.
#pragma once
#include <QWidget>

#include "ui/pages/compare/compare_charts.h"
#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/compared_reader.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/pages/compare/replay_dialog.h"
#include "ui/session/workspace.h"

class QLabel;
class QLineEdit;
class QHBoxLayout;
class QScrollArea;
class QSplitter;
class QTableView;

namespace mw::ui {

class ComparePage : public QWidget, public WindowPage {
  Q_OBJECT
 public:
  explicit ComparePage(ComparedReader::Folders folders, QWidget* parent = nullptr);
  void attach(Workspace& workspace) override;
  void restyle() override;
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  std::optional<ReplayOffer> replay_offer() const override;
  QUndoStack* active_undo_stack(Document&) override { return nullptr; }  // the page changes nothing
  QStringList unfinished_work() const override;
  void stop_work() override { replay_->task().cancel(); }

  void add_run(const store::RunId& run);  // reads it again if it is already there
  void add_file(const std::filesystem::path& file);
  void remove(int at);
  void move(int from, int to);
  void clear();
  // Opens the replay dialog for a run and adds the result to the tray. `point`: index of a point in its set.
  void replay(const compare::ComparedRun& run, std::optional<size_t> point);
  void choose_export();
  void export_to(const std::filesystem::path& file);  // format by extension
  bool is_busy() const { return reader_.pending() > 0; }
  const std::vector<compare::ComparedRun>& runs() const { return runs_; }
  const compare::Comparison& comparison() const { return *comparison_; }
  CompareTray& tray() { return *tray_; }
  ComparisonModel& model() { return model_; }
  QTableView& table() { return *table_; }
  CompareCharts& charts() { return *charts_; }
  ReplayDialog& replay_dialog() { return *replay_; }
  QString verdict() const;  // including all confounders
  serve::Slo slo() const;
  QLineEdit& slo_field(size_t at) { return *slo_[at]; }  // TTFT, TPOT, E2E

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void register_actions(Workspace& workspace);
  void build();
  QWidget* verdict_line();
  QWidget* table_side();
  QLayout* table_controls();
  void add_slo_fields(QHBoxLayout& row);
  hardware::LoadCatalogue catalogue() const;
  void take(std::vector<compare::ComparedRun>& runs);
  void report(const Problem& problem) { workspace_->report(ProblemSource::file, problem); }
  void fill_add_menu();
  void changed();
  void show_verdict();
  void emphasise(int column);
  void fit_columns();
  void copy_markdown();

  ComparedReader reader_;
  store::RunId replayed_of_;  // empty: from a file
  std::vector<compare::ComparedRun> runs_;
  ComparisonModel::Ptr comparison_;
  ComparisonModel model_;
  CompareTray* tray_;
  QMenu* add_menu_;
  QLabel *verdict_, *alone_;
  QScrollArea* verdict_area_;
  QWidget* empty_;
  QSplitter* across_;
  QTableView* table_ = nullptr;  // null while events are already filtered
  QLineEdit* slo_[3];
  CompareCharts* charts_;
  ReplayDialog* replay_;
};

}  // namespace mw::ui
