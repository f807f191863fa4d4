// SPDX-License-Identifier: GPL-3.0-or-later
// The main window: composes document, runs, pages and docks. GUI thread.
#pragma once
#include <QMainWindow>
#include <QTimer>
#include <array>

#include "ui/form/experiment_panel.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/data/data_page.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/shared_plan_context.h"
#include "ui/shell/app.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/bottom_panels.h"
#include "ui/shell/close_guard.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/run_actions.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/toolbar.h"
#include "ui/shell/undo_actions.h"
#include "ui/shell/welcome.h"
#include "ui/theme/theme.h"

class QDockWidget;
class QStackedWidget;

namespace mw::ui {

class ManualWindow;

struct WindowSetup {
  std::filesystem::path experiment, runs_folder, resources;
  std::filesystem::path session_folder;  // empty: remembers nothing (tour, benchmarks)
};

Page page_of(RunKind kind);

class MainWindow : public QMainWindow, public Workspace {
  Q_OBJECT
 public:
  explicit MainWindow(const WindowSetup& setup);
  ~MainWindow() override;

  // Call it once when the window is shown: opens the experiment of the setup if it was postponed because of unsaved
  // edits, starts a run if requested, and otherwise opens the run and the comparison of the last session.
  void begin(Start start);
  std::filesystem::path crash_report_file() const { return session_.crash_report_file(); }  // empty: none
  // For the end of the session: closes without a question; a run writes a checkpoint first.
  void close_unattended() { close_guard_->close_unattended(); }

  ActionRegistry& actions() override { return actions_; }
  FrameClock& clock() override { return clock_; }
  Document& document() override { return document_; }
  RunController& runs() override { return runs_; }
  Predictor& predictor() override { return predictor_; }
  const std::filesystem::path& resources() const override { return setup_.resources; }
  Page page() const override;
  WindowPage& current_page() override { return *all_pages_[static_cast<size_t>(page())]; }
  void show_page(Page page) override;
  void show_kind(RunKind kind) override;
  void show_setting(const std::string& key) override;
  void start_run(RunKind kind) override { run_actions_->start(kind); }
  void open_run(const store::RunId& run) override;
  void resume_run(const store::RunId& run) override;
  void clone_run(const store::RunId& run) override;
  std::optional<ReplayOffer> replay_offer() const override { return serve_->replay_offer(); }
  void report(ProblemSource source, const Problem& problem) override;
  void clear_problems(ProblemSource source) override { problems_.clear(source); }
  void update_actions() override;
  void work_ended() override { close_guard_->close_when_done(); }

  DesignPage& design_page() { return *design_; }
  DataPage& data_page() { return *data_; }
  TrainPage& train_page() { return *train_; }
  ServePage& serve_page() { return *serve_; }
  SweepPage& sweep_page() { return serve_->sweep(); }
  SizePage& size_page() { return serve_->sizes(); }
  ComparePage& compare_page() { return *compare_; }
  RunsPage& runs_page() { return *runs_page_; }
  ExperimentPanel& panel() { return *panel_; }
  ProblemsModel& problems() { return problems_; }
  ProblemsPanel& problems_panel() { return *problems_panel_; }
  StatusStrip& strip() { return *strip_; }
  CommandPalette& palette_box() { return *palette_; }
  Welcome& welcome() { return *welcome_; }
  LogPanel& log() { return *log_; }
  JobsPanel& jobs() { return *jobs_; }
  BottomDocks& bottom() { return *bottom_; }
  void set_shade(Shade shade);
  void set_panel_state(PanelState state);  // of the experiment panel on the current page, which remembers it
  void raise_panel(const QString& dock);   // "problems", "log", "jobs" or "experiment"
  void open_palette();
  void open_file(const std::filesystem::path& file) { documents_->open_file(file); }
  DocumentActions& documents() { return *documents_; }
  // Opens an experiment, an export or a run of the store, sets the folder of a model, an adapter or a data file, ports
  // a script, compares results, and imports anything else.
  void open_dropped(const std::filesystem::path& path);

 protected:
  void changeEvent(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragMoveEvent(QDragMoveEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void build_pages();
  void build_docks();
  void register_page_actions();
  void register_panel_actions();
  void register_view_actions();
  void build_bars();
  void show_panel_state();
  void connect_frames();
  void connect_document();
  void connect_runs();
  void connect_problems();
  void restore();
  void remember();
  void offer_memory_fixes();
  void show_predicted_problems();
  store::RunId offered_fixes_of_;  // run
  void show_problem_counts();
  void show_errors();
  void start_job(Job job);
  void reopen_runs();  // of the last session
  void show_manual();  // at the chapter of the current page
  void update_title();
  RunKind kind_of_run(const store::RunId& run) const;
  bool takes_runs(QPoint at) const;  // whether a drop at this position adds runs to the comparison
  std::vector<PaletteEntry> palette_entries();

  WindowSetup setup_;
  Session session_;
  Theme theme_;
  FrameClock clock_;
  Document document_;
  SharedPlanContext context_;
  RunController runs_;
  Predictor predictor_;
  ProblemsModel problems_;
  ActionRegistry actions_;
  PendingQuestion question_;
  QStackedWidget* pages_;
  DesignPage* design_;
  DataPage* data_;
  TrainPage* train_;
  ServePage* serve_;
  ComparePage* compare_;
  RunsPage* runs_page_;
  bool compares_imported_ = false;      // what the Runs page imports is for the Compare page
  std::vector<WindowPage*> all_pages_;  // in the order of Page
  ExperimentPanel* panel_;
  ProblemsPanel* problems_panel_;
  LogPanel* log_;
  JobsPanel* jobs_;
  StatusStrip* strip_;
  CommandPalette* palette_;
  Welcome* welcome_;
  Toolbar* toolbar_ = nullptr;
  ManualWindow* manual_ = nullptr;                 // created on first use
  std::array<PanelState, kPages> panel_states_{};  // of each page
  int panel_width_ = 300;                          // when open; pixels
  QDockWidget *experiment_dock_, *problems_dock_, *log_dock_, *jobs_dock_;
  BottomDocks* bottom_;
  QTimer withdraw_;                             // of the bottom panels, some time after the last problem was solved
  std::unique_ptr<DocumentActions> documents_;  // last: they use the other members
  std::unique_ptr<UndoActions> undo_;
  std::unique_ptr<RunActions> run_actions_;
  std::unique_ptr<CloseGuard> close_guard_;
};

}  // namespace mw::ui
