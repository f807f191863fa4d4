// SPDX-License-Identifier: GPL-3.0-or-later
// The Compare page: a tray of runs and results with the first as baseline, the validity of the comparison, a table of
// the differences, and charts. Serving, training and size runs have a comparison each. GUI thread.
#pragma once
#include <QFileInfo>

#include "ui/pages/compare/compare_charts.h"
#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/pages/compare/replay_dialog.h"
#include "ui/session/workspace.h"

class QButtonGroup;
class QLineEdit;
class QTabBar;
class QTableView;

namespace mw::ui {

class ComparePage : public QWidget, public WindowPage {
  Q_OBJECT
 public:
  ComparePage(ComparedReader::Folders folders, plan::LoadContext context, QWidget* parent = nullptr);
  void attach(Workspace& workspace) override;
  void restyle() override { changed(); }
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  std::optional<ReplayOffer> replay_offer() const override;
  QUndoStack* active_undo_stack(Document&) override { return nullptr; }  // the page changes nothing
  QStringList unfinished_work() const override;
  void stop_work() override { replay_->task().cancel(); }

  void add_run(const store::RunId& run);             // reads it again if it is already there
  void add_file(const std::filesystem::path& file);  // a result, or a bundle: import_wanted
  void add_shipped_results();                        // the published ones of the resources
  void remove(int at);
  void move(int from, int to);
  void clear();
  // Reads the runs and files again that save_state() saved. A toast names those that are gone.
  void reopen(const Session& session);
  // Opens the replay dialog for a run and adds the result to the tray. `point`: index of a point in its set.
  void replay(const compare::ComparedRun& run, std::optional<size_t> point);
  void choose_export();
  void export_to(const std::filesystem::path& file);  // format by extension
  bool is_busy() const { return reader_.pending() > 0 || effects_.is_busy() || !reopening_.isEmpty(); }
  const std::vector<compare::ComparedRun>& runs() const { return runs_; }  // of the shown kind
  const compare::Comparison& comparison() const { return *comparison_; }
  CompareTray& tray() { return *tray_; }
  ComparisonModel& model() { return model_; }
  QTableView& table() { return *table_; }
  CompareCharts& charts() { return *charts_; }
  ReplayDialog& replay_dialog() { return *replay_; }
  QTabBar& kinds() { return *kinds_; }
  QString verdict() const;  // including all confounders
  options::Slo slo() const;
  QLineEdit& slo_field(size_t at) { return *slo_[at]; }  // TTFT, TPOT, E2E
  enum class Shown { table, charts, both };
  Shown shown() const;

 signals:
  void import_wanted(const QString& bundle);  // and then add_run() for each of its runs

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void register_actions(Workspace& workspace);
  void build();
  QFileInfoList shipped_results() const;
  QLayout* verdict_row();
  void add_shown_buttons(QHBoxLayout& row);
  void add_slo_fields(QHBoxLayout& row);
  void build_table();
  void take(std::vector<compare::ComparedRun>& runs);
  void settle();
  void report(const Problem& problem) { workspace_->report(ProblemSource::file, problem); }
  void fill_add_menu();
  void add_runs_to_menu(const std::vector<store::RunRow>& runs, QAction* end);  // before `end`
  void show_kind(int kind);
  void changed();
  void estimate_effects();
  void show_verdict();
  void show_parts();
  void emphasise(int column);
  void fit_columns();
  void copy_markdown();

  ComparedReader reader_;
  store::RunId replayed_of_;  // empty: from a file
  QStringList reopening_;     // the saved tray, while it is being read
  std::vector<compare::ComparedRun> runs_;
  std::array<std::vector<compare::ComparedRun>, 3> other_kinds_;  // by ComparedKind; that of the shown kind is empty
  compare::ComparedKind kind_{};
  ComparisonModel::Ptr comparison_;
  BackgroundTask<compare::Comparison> effects_;  // adds the effects to `comparison_`
  ComparisonModel model_;
  QTabBar* kinds_;
  CompareTray* tray_;
  QMenu* add_menu_;
  QLabel *verdict_, *confounders_, *alone_;
  QToolButton *why_not_, *differing_;
  QWidget *empty_, *slo_bar_, *body_;
  QButtonGroup* shown_;
  bool shown_chosen_ = false;  // by the user
  QSplitter* across_;
  QTableView* table_ = nullptr;  // null while events are already filtered
  QLineEdit* slo_[3];
  CompareCharts* charts_;
  ReplayDialog* replay_;
};

}  // namespace mw::ui
