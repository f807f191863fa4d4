// SPDX-License-Identifier: GPL-3.0-or-later
// The main window: composes document, runs, pages and docks, and connects them. GUI thread.
#pragma once
#include <QMainWindow>
#include <QPointer>
#include <QTimer>
#include <QUndoGroup>
#include <functional>

#include "ui/form/experiment_panel.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/data/data_page.h"
#include "ui/pages/design/calibrate_dialog.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/design/proof_window.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/pages/train/export_dialog.h"
#include "ui/pages/train/launch_dialog.h"
#include "ui/pages/train/merge_dialog.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/frame_clock.h"
#include "ui/session/pricer.h"
#include "ui/session/session.h"
#include "ui/shell/app.h"
#include "ui/shell/bottom_fold.h"
#include "ui/shell/bottom_panels.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/status_strip.h"
#include "ui/theme/theme.h"

class QDockWidget;
class QMessageBox;
class QStackedWidget;
class QToolButton;

namespace mw::ui {

class ManualWindow;

struct WindowSetup {
  std::filesystem::path experiment, runs_folder, resources;
  std::filesystem::path session_folder;  // empty: remembers nothing (tour, benchmarks)
};

enum class Page { design, data, train, serve, compare, runs };
Page page_of(RunKind kind);

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(const WindowSetup& setup);
  ~MainWindow() override;

  // To be called once, when the window is shown: opens the setup's experiment if unsaved edits of another one stand in
  // its way, which asks for them, and starts a run.
  void begin(Start start);
  // Closes without a question, for the end of the session: a run is stopped with a checkpoint first.
  void close_unattended();

  Document& document() { return document_; }
  RunController& runs() { return runs_; }
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
  LogPanel& log() { return *log_; }
  JobsPanel& jobs() { return *jobs_; }
  ActionRegistry& actions() { return actions_; }
  FrameClock& clock() { return clock_; }
  Pricer& pricer() { return pricer_; }
  CalibrateDialog& calibrate_dialog() { return *calibrate_; }
  LaunchDialog& launch_dialog() { return *launch_; }
  ExportDialog& export_dialog() { return *export_; }
  MergeDialog& merge_dialog() { return *merge_; }
  ProofWindow& proof_window() { return *proof_window_; }
  void show_page(Page page);
  Page page() const;
  void set_shade(Shade shade);
  void raise_panel(const QString& dock);  // "problems", "log", "jobs", "experiment"; open, where it was folded
  BottomFold& bottom() { return *bottom_; }
  void open_palette();
  void open_file(const std::filesystem::path& file, const std::function<void()>& then = {});

 protected:
  void changeEvent(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragMoveEvent(QDragMoveEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  // main_window.cpp
  void build_pages();
  void build_docks();
  void update_actions();
  void update_title();
  void remember();
  // window_documents.cpp
  void first_document();
  void when_edits_are_safe(const std::function<void()>& go_on);
  void new_document();
  void open_example(const std::filesystem::path& file);
  void choose_file();
  void save(const std::function<void()>& then = {});
  void save_as(const std::function<void()>& then = {});
  void clone(const QString& run);
  // window_closing.cpp
  void wire_closing();
  QStringList unfinished_work() const;
  bool has_work() const;
  bool is_asking() const;
  void ask_about_work(const QStringList& work);
  void stop_work();
  void keep_working();
  void close_when_done();
  bool edits_are_kept();
  // window_undo.cpp
  void build_undo();
  void choose_undo_stack();
  // window_wiring.cpp
  void wire();
  void price_tokens();
  // window_elsewhere.cpp
  void build_elsewhere();  // dialogs and actions
  void wire_elsewhere();
  NamedExperiment form_experiment() const;
  static NamedExperiment run_experiment(const RunData& run);
  std::vector<NamedExperiment> offered_experiments() const;
  int offered_first() const;  // of them: what the page in sight shows
  void launch_elsewhere();
  void merge_shown();
  // window_serving.cpp
  void wire_serving();
  void open_run(const store::RunId& run);  // in the page of its kind
  void resume_run(const store::RunId& run);
  void show_kind(RunKind kind);  // the page of such runs
  RunKind kind_of_run(const store::RunId& run) const;
  void compare(const std::vector<store::RunId>& runs);
  void compare_chosen();             // of the table, or what the Serve page shows
  void replay_chosen();              // what the Serve page shows, or the comparison's baseline
  bool takes_runs(QPoint at) const;  // a drop there adds them to the comparison
  void go_to_setting(const std::string& key);
  // window_actions.cpp
  void build_actions();
  void build_toolbar();
  void fill_recent(QMenu* menu);
  void run();
  void start(RunKind kind);
  void prove(const NamedExperiment& experiment);
  void prove_again();
  void pause_or_continue();
  void show_errors();
  void show_manual();  // at the chapter of the page in use
  void fix(const lint::Fix& fix, const QString& id);
  void report(ProblemSource source, const Problem& problem);
  std::vector<PaletteEntry> palette_entries();

  WindowSetup setup_;
  Session session_;
  Theme theme_;
  FrameClock clock_;
  Document document_;
  QUndoGroup undo_group_;
  RunController runs_;
  Pricer pricer_;
  Calibrator calibrator_;
  ProblemsModel problems_;
  ActionRegistry actions_;
  QTimer journal_;
  QStackedWidget* pages_;
  DesignPage* design_;
  DataPage* data_;
  TrainPage* train_;
  ServePage* serve_;
  ComparePage* compare_;
  RunsPage* runs_page_;
  ExperimentPanel* panel_;
  ProblemsPanel* problems_panel_;
  LogPanel* log_;
  JobsPanel* jobs_;
  StatusStrip* strip_;
  CommandPalette* palette_;
  CalibrateDialog* calibrate_;
  ProofWindow* proof_window_;
  LaunchDialog* launch_;
  ExportDialog* export_;
  MergeDialog* merge_;
  ManualWindow* manual_ = nullptr;  // made when it is first opened
  QDockWidget *experiment_dock_, *problems_dock_, *log_dock_, *jobs_dock_;
  BottomFold* bottom_;
  std::vector<QToolButton*> page_buttons_;
  QToolButton* file_button_ = nullptr;
  qint64 runs_refreshed_ = 0;
  store::RunId proved_run_;                        // that the last proof was of; empty: of the form
  std::filesystem::path first_file_;               // to be opened by begin()
  QPointer<QMessageBox> question_;                 // asked last
  enum class Closing { no, stopping, when_done };  // stopping: closes then; when_done: minimised until work is done
  Closing closing_ = Closing::no;
  bool unattended_ = false, edits_given_up_ = false;
};

}  // namespace mw::ui
