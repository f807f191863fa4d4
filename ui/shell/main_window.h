// SPDX-License-Identifier: GPL-3.0-or-later
// The main window: composes document, runs, pages and docks. GUI thread.
#pragma once
#include <QMainWindow>

#include "ui/session/workspace.h"
#include "ui/theme/theme.h"

namespace mw::ui {

class CloseGuard;
class CommandPalette;
class DocumentActions;
class DropTarget;
class ManualWindow;
class PageStack;
class PendingQuestion;
class ProblemsModel;
class RunActions;
class SharedPlanContext;
class StatusStrip;
class Toolbar;
class UndoActions;
class Welcome;
class WindowDocks;
enum class WelcomeTask;
enum class Start;

struct WindowSetup {
  std::filesystem::path experiment, runs_folder, resources;
  std::filesystem::path session_folder;  // empty: remembers nothing (tour, benchmarks)
};

class MainWindow : public QMainWindow, public Workspace {
  Q_OBJECT
 public:
  explicit MainWindow(const WindowSetup& setup);
  ~MainWindow() override;

  // Call it once when the window is shown: opens the experiment of the setup if it was postponed because of unsaved
  // edits, starts a run if requested, and otherwise opens the run and the comparison of the last session.
  void begin(Start start);
  const Session& session() const { return *session_; }
  void close_unattended();  // for the end of the session: asks nothing; a run writes a checkpoint first

  ActionRegistry& actions() override { return *actions_; }
  FrameClock& clock() override { return *clock_; }
  Document& document() override { return *document_; }
  RunController& runs() override { return *runs_; }
  Predictor& predictor() override { return *predictor_; }
  const std::filesystem::path& resources() const override { return setup_.resources; }
  Page page() const override;
  WindowPage& page_at(Page page) override;
  void show_page(Page page) override;
  void show_setting(const std::string& key) override;
  void start_run(RunKind kind) override;
  void open_run(const store::RunId& run) override;
  void resume_run(const store::RunId& run) override;
  void clone_run(const store::RunId& run) override;
  void report(ProblemSource source, const Problem& problem) override;
  void clear_problems(ProblemSource source) override;
  void update_actions() override;
  void work_ended() override;

  PageStack& pages() { return *pages_; }
  WindowDocks& docks() { return *docks_; }
  ProblemsModel& problems() { return *problems_; }
  StatusStrip& strip() { return *strip_; }
  CommandPalette& palette_box() { return *palette_; }
  Welcome& welcome() { return *welcome_; }
  DocumentActions& documents() { return *documents_; }
  DropTarget& drops() { return *drops_; }
  void set_shade(Shade shade);
  void open_palette();

 protected:
  void changeEvent(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void register_actions();
  void build_bars();
  void connect_frames();
  void connect_document();
  void connect_runs();
  void restore();
  void remember();
  void start_job(WelcomeTask job);
  void reopen_runs();  // of the last session
  void update_title();

  WindowSetup setup_;
  Theme theme_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<FrameClock> clock_;
  std::unique_ptr<Document> document_;
  std::unique_ptr<SharedPlanContext> context_;
  std::unique_ptr<RunController> runs_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<ProblemsModel> problems_;
  std::unique_ptr<ActionRegistry> actions_;
  std::unique_ptr<PendingQuestion> question_;
  PageStack* pages_;
  StatusStrip* strip_;
  WindowDocks* docks_;
  CommandPalette* palette_;
  Welcome* welcome_;
  Toolbar* toolbar_;
  DropTarget* drops_;
  ManualWindow* manual_ = nullptr;              // created on first use
  std::unique_ptr<DocumentActions> documents_;  // last: they use the other members
  std::unique_ptr<UndoActions> undo_;
  std::unique_ptr<RunActions> run_actions_;
  std::unique_ptr<CloseGuard> close_guard_;
};

}  // namespace mw::ui
