// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/main_window.h"

#include <QApplication>
#include <QDockWidget>

#include "core/base/crash_report.h"
#include "core/store/store.h"
#include "ui/form/experiment_panel.h"
#include "ui/form/form_field.h"
#include "ui/manual/manual_window.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/session/frame_clock.h"
#include "ui/session/shared_plan_context.h"
#include "ui/shell/app.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/close_guard.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/drop_target.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/recovery.h"
#include "ui/shell/run_actions.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/toolbar.h"
#include "ui/shell/welcome.h"
#include "ui/shell/window_docks.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

// The result of the LoRA settings: "Predicted: 3.19M parameters, 0.122 %, saved in 12.2 MiB".
QString trained_text(const Predictor& predictor) {
  std::optional<train::Trainable> trained;
  if (predictor.design()) trained = predictor.design()->planned.trainable;
  return trained ? MainWindow::tr("Predicted: %1, saved in %2").arg(qs(to_text(*trained)), qs(to_text(trained->file)))
                 : QString();
}

// Beside the settings: what the shown plan has chosen or made of them.
void show_planned(Form& form, const Predictor& predictor) {
  const views::DesignPtr& design = predictor.design();
  if (FormRow* mesh = form.row("mesh"))
    mesh->field()->set_default_text(design && !mesh->is_set() ? mesh_text(design->request().mesh) : QString());
  form.set_note("LoRA", trained_text(predictor));
  form.set_stack(design ? std::optional(design->request().stack) : std::nullopt);
}

RunKind kind_of_run(const RunsModel& runs, const store::RunId& run) {
  const int row = runs.row_of(run);
  return row >= 0 ? kind_of(runs.row(row)) : RunKind::train;
}

QString manual_chapter_of(Page page) {
  return page == Page::design                        ? u"02-designing-a-mesh.md"_s
         : page == Page::data || page == Page::train ? u"03-training.md"_s
         : page == Page::serve                       ? u"04-serving-and-sweeps.md"_s
                                                     : u"05-comparing-and-auditing.md"_s;
}

}  // namespace

MainWindow::MainWindow(const WindowSetup& setup)
    : setup_(setup),
      theme_(make_theme(system_shade())),
      session_(std::make_unique<Session>(setup.session_folder)),
      clock_(std::make_unique<FrameClock>()),
      document_(std::make_unique<Document>()),
      context_(std::make_unique<SharedPlanContext>(
          setup.resources / "hardware", setup.session_folder.empty() ? fs::path() : setup.session_folder / "hardware")),
      runs_(std::make_unique<RunController>(
          setup.runs_folder, context_->loader(),
          qEnvironmentVariableIsEmpty("MESHWRIGHT_RUNS") && setup.runs_folder == store::default_folder()
              ? context_->own_folder()
              : fs::path())),
      predictor_(std::make_unique<Predictor>(context_->loader())),
      problems_(std::make_unique<ProblemsModel>()),
      actions_(std::make_unique<ActionRegistry>(this)),
      question_(std::make_unique<PendingQuestion>(*this)) {
  const QString shade = session_->value(u"theme"_s).toString();
  if (!shade.isEmpty()) theme_ = make_theme(shade == u"dark"_s ? Shade::dark : Shade::light);
  apply_palette(theme_, *qApp);
  setDockOptions(QMainWindow::AnimatedDocks | QMainWindow::AllowTabbedDocks);
  setTabPosition(Qt::BottomDockWidgetArea, QTabWidget::North);
  // First of all that follow an edit: the worker plans while the others are brought up to date.
  connect(document_.get(), &Document::changed, this, [this] { predictor_->request(*document_); });
  pages_ = new PageStack(*document_, *predictor_, *context_, *runs_, setup_.resources, this);
  setCentralWidget(new PageArea(pages_));
  strip_ = new StatusStrip(*predictor_, *runs_, this);
  setStatusBar(strip_);
  docks_ = new WindowDocks(*this, *this, *problems_);
  documents_ = std::make_unique<DocumentActions>(*this, *this, *session_, *question_);
  undo_ = std::make_unique<UndoActions>(*this);
  run_actions_ = std::make_unique<RunActions>(*this);
  close_guard_ = std::make_unique<CloseGuard>(*this, *this, *documents_, *question_, pages_->all());
  pages_->attach(*this);
  register_actions();
  docks_->register_actions();
  build_bars();
  connect_frames();
  connect_document();
  connect_runs();
  new ProblemCollector(*this, *problems_, *docks_, *strip_, *pages_);
  connect(&strip_->measure_button(), &QToolButton::clicked, (*actions_)[u"runs.benchmark"_s], &QAction::trigger);
  apply(theme_, *qApp);
  restore();
}

MainWindow::~MainWindow() {
  qApp->disconnect(this);
  // A field that loses the focus ends its gesture, which needs the document.
  if (QWidget* focused = focusWidget()) focused->clearFocus();
  hide();
  clock_->disconnect();
  document_->disconnect();
  runs_->disconnect();
}

void MainWindow::register_actions() {
  actions_->add({u"view.theme"_s, tr("Toggle Dark Theme"), tr("Switch between the light and the dark theme"),
                 Qt::CTRL | Qt::SHIFT | Qt::Key_T, Glyph::theme},
                [this] { set_shade(theme_.shade == Shade::dark ? Shade::light : Shade::dark); });
  actions_->add({u"view.palette"_s, tr("Command Palette"), tr("Find a command, setting or run by a few letters"),
                 Qt::CTRL | Qt::Key_K, Glyph::command},
                [this] { open_palette(); });
  (*actions_)[u"view.palette"_s]->setShortcuts({Qt::CTRL | Qt::Key_K, Qt::CTRL | Qt::SHIFT | Qt::Key_P});
  actions_->add({u"help.manual"_s, tr("Manual"), tr("Open the manual at the chapter of this page"), Qt::Key_F1},
                [this] {
                  if (!manual_) manual_ = new ManualWindow(setup_.resources / "manual", this);
                  manual_->open_chapter(manual_chapter_of(page()));
                });
  actions_->add({u"help.shortcuts"_s, tr("Keyboard Shortcuts"), tr("List the commands that have a shortcut")},
                [this] { show_shortcuts(*this, *actions_); });
  actions_->add({u"help.welcome"_s, tr("Welcome"), tr("Show the three jobs that a new user can start with")},
                [this] { welcome_->open(); });
  actions_->add(
      {u"help.about"_s, tr("About Meshwright"), tr("Show version, licences and the kernels of this processor")},
      [this] { show_about(*this); });
  actions_->add({u"app.quit"_s, tr("Quit"), tr("Close the window and restore unsaved edits at the next start"),
                 QKeySequence::Quit},
                [this] { close(); });
}

void MainWindow::build_bars() {
  toolbar_ = new Toolbar(
      *this, [this](QMenu& menu) { documents_->fill_menu(menu); }, this);
  addToolBar(toolbar_);
  QAction* toggle = (*actions_)[u"view.panels"_s];
  QToolButton* panels = flat_button(Glyph::panels, toggle->text(), strip_);
  panels->setDefaultAction(toggle);
  strip_->addPermanentWidget(panels);
  palette_ = new CommandPalette(this);
  welcome_ = new Welcome(*runs_, this);
  connect(welcome_, &Welcome::chosen, this, &MainWindow::start_job);
  connect(welcome_, &Welcome::closed, this, [this](bool again) { session_->set_value(u"welcome"_s, again); });
  drops_ = new DropTarget(*this, *this, *documents_, *pages_, *toolbar_);
  undo_->add_stack(&document_->undo_stack());
  for (WindowPage* page : pages_->all()) undo_->add_stack(page->active_undo_stack(*document_));
  undo_->follow_focus(docks_->experiment_dock(), *pages_);
}

void MainWindow::connect_frames() {
  connect(clock_.get(), &FrameClock::drain, runs_.get(), &RunController::drain);
  connect(clock_.get(), &FrameClock::show, this, [this] {
    if (!isVisible()) return;
    for (WindowPage* page : pages_->all()) page->show_frame();
    docks_->jobs.show_frame();
    strip_->show_frame();
    welcome_->show_frame();
  });
}

void MainWindow::connect_document() {
  connect(document_.get(), &Document::changed, this, [this] {
    problems_->set(ProblemSource::document, document_->problems());
    update_actions();
  });
  connect(document_.get(), &Document::file_changed, this, &MainWindow::update_title);
  connect(close_guard_.get(), &CloseGuard::title_changed, this, &MainWindow::update_title);
  connect(predictor_.get(), &Predictor::changed, this, [this] {
    if (predictor_->is_stale() || (predictor_->design() && predictor_->is_outdated())) return;  // an exact one follows
    show_planned(docks_->panel.form(), *predictor_);
  });
}

void MainWindow::connect_runs() {
  connect(runs_.get(), &RunController::shown_changed, this, [this] { docks_->log.show_run(runs_->shown()); });
  connect(runs_.get(), &RunController::shown_updated, &docks_->log, &LogPanel::grow);
  connect(runs_.get(), &RunController::state_changed, this, &MainWindow::update_actions);
}

void MainWindow::restore() {
  constexpr QSize kFrame{16, 40};  // of a window, at most: borders and title
  resize(QSize(1280, 800).boundedTo(screen()->availableSize() - kFrame));
  restoreGeometry(session_->value(u"layout/geometry"_s).toByteArray());
  restoreState(session_->value(u"layout/state"_s).toByteArray());
  docks_->restore_state(*session_);
  pages_->restore_state(*session_);
  documents_->open_first(setup_.experiment);
  problems_->set(ProblemSource::document, document_->problems());
  predictor_->request(*document_);
  const int last = session_->value(u"page"_s, -1).toInt();
  const experiment::BoundExperiment& config = document_->experiment().valid_values();
  const bool elsewhere = config.target.id != "cpu" || config.kind == experiment::Kind::serve;
  show_page(last >= 0 && last < pages_->count() ? static_cast<Page>(last) : elsewhere ? Page::design : Page::train);
  update_title();
}

void MainWindow::remember() {
  session_->set_value(u"layout/geometry"_s, saveGeometry());
  session_->set_value(u"layout/state"_s, saveState());
  session_->set_value(u"open_run"_s, runs_->shown() ? qs(runs_->shown()->id) : QString());
  docks_->save_state(*session_);
  pages_->save_state(*session_);
}

void MainWindow::begin(Start start) {
  offer_recovery(*this, *this, *session_, *documents_);
  documents_->open_postponed([this, start] {
    if (start == Start::first || session_->value(u"welcome"_s, false).toBool()) welcome_->open();
    if (start == Start::open) return reopen_runs();
    show_page(Page::train);
    trigger(u"run.start"_s);
  });
}

void MainWindow::reopen_runs() {
  docks_->panel.set_tab(session_->value(u"panel_tab"_s, 0).toInt());
  pages_->runs.refresh();
  if (const QString run = session_->value(u"open_run"_s).toString(); pages_->runs.model().row_of(ss(run)) >= 0)
    runs_->open(ss(run));
  pages_->compare.reopen(*session_);
}

void MainWindow::start_job(WelcomeTask job) {
  const fs::path examples = setup_.resources / "examples";
  switch (job) {
    case WelcomeTask::design_mesh:
      return documents_->open_example(examples / "paper-train-v5p-8.json", [this] { show_page(Page::design); });
    case WelcomeTask::watch_run:
      show_page(Page::train);
      if (runs_->live()) return runs_->show_live();
      return documents_->open_example(examples / "tiny-lora.json", [this] { start_run(RunKind::train); });
    case WelcomeTask::compare_sweeps:
      pages_->compare.add_shipped_results();
      return show_page(Page::compare);
  }
}

void MainWindow::close_unattended() {
  close_guard_->close_unattended();
}

Page MainWindow::page() const {
  return pages_->page();
}

WindowPage& MainWindow::page_at(Page page) {
  return pages_->at(page);
}

void MainWindow::show_page(Page page) {
  pages_->show_page(page);
  toolbar_->show_page(page);
  docks_->show_page(page);
  const auto kind = current_page().run_kind();
  if (kind) runs_->activate(*kind);
  strip_->set_kind(kind.value_or(RunKind::train));
  docks_->panel.command().set_command(current_page().subcommand());
  for (WindowPage* each : pages_->all()) each->show_frame();
  undo_->choose_stack();
  update_actions();
}

void MainWindow::show_setting(const std::string& key) {
  docks_->raise(u"experiment"_s);
  docks_->panel.show_form();
  if (!key.empty()) docks_->panel.form().focus_key(key);
}

void MainWindow::start_run(RunKind kind) {
  run_actions_->start(kind);
}

void MainWindow::open_run(const store::RunId& run) {
  runs_->open(run);
  show_kind(kind_of_run(pages_->runs.model(), run));
}

void MainWindow::resume_run(const store::RunId& run) {
  pages_->runs.refresh();
  run_actions_->resume(run);
  show_kind(kind_of_run(pages_->runs.model(), run));
}

void MainWindow::clone_run(const store::RunId& run) {
  runs_->store().read(
      *this, [run](const store::Store& store) { return store.experiment(run); },
      [this](const experiment::Experiment& experiment) { documents_->open_copy(experiment); },
      [this](const Problem& problem) { report(ProblemSource::store, problem); });
}

void MainWindow::report(ProblemSource source, const Problem& problem) {
  note_event("problem " + problem.id);
  problems_->set(source, {problem});
  docks_->raise(u"problems"_s);
}

void MainWindow::clear_problems(ProblemSource source) {
  problems_->clear(source);
}

void MainWindow::work_ended() {
  close_guard_->close_when_done();
}

void MainWindow::set_shade(Shade shade) {
  theme_ = make_theme(shade);
  apply(theme_, *qApp);
  session_->set_value(u"theme"_s, shade == Shade::dark ? u"dark"_s : u"light"_s);
  update_actions();
  // Updates colours that widgets have stored.
  for (WindowPage* page : pages_->all()) page->restyle();
  docks_->log.show_run(runs_->shown());
  docks_->panel.json().restyle();
  strip_->refresh();
}

void MainWindow::update_title() {
  setWindowTitle(close_guard_->title_prefix() + document_->title() + u"[*] \u2013 Meshwright"_s);
  setWindowModified(document_->is_dirty());
  toolbar_->show_document(*document_);
}

void MainWindow::update_actions() {
  for (WindowPage* page : pages_->all()) page->update_actions();
  run_actions_->update();
  docks_->panel.form().set_kind(experiment_kind(run_actions_->next_kind()));
}

void MainWindow::open_palette() {
  std::vector<PaletteEntry> entries;
  for (QAction* a : actions_->all()) {
    if (a->objectName() == u"view.palette"_s) continue;
    entries.push_back(
        {a->text(), a->shortcut().toString(QKeySequence::NativeText), [a] { a->trigger(); }, a->isEnabled()});
  }
  for (const experiment::Parameter& p : experiment::parameters())
    entries.push_back({tr("Set %1: %2").arg(qs(p.group), qs(p.label)), qs(p.key), [this, key = p.key] {
                         docks_->raise(u"experiment"_s);
                         docks_->panel.go_to({.place = key.ends_with(".*") ? key.substr(0, key.size() - 2) : key});
                       }});
  for (WindowPage* page : pages_->all())
    for (PaletteEntry& entry : page->palette_entries()) entries.push_back(std::move(entry));
  palette_->open(std::move(entries));
}

void MainWindow::closeEvent(QCloseEvent* event) {
  remember();
  if (!close_guard_->is_stopping()) session_->set_value(u"page"_s, pages_->currentIndex());
  event->ignore();
  if (!close_guard_->may_close()) return;
  event->accept();
  QMainWindow::closeEvent(event);
}

// A minimised window that waits for its work becomes a normal window when the user activates it.
void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::WindowStateChange || event->type() == QEvent::ActivationChange)
    if (close_guard_) close_guard_->window_activated();
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  for (const Page page : {Page::train, Page::serve}) pages_->at(page).show_frame();
}

}  // namespace mw::ui

#include "moc_main_window.cpp"
