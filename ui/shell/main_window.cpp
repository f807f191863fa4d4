// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QLineEdit>
#include <QMimeData>
#include <QScreen>
#include <QStackedWidget>
#include <QTabWidget>
#include <QToolButton>
#include <algorithm>

#include "core/base/crash_report.h"
#include "core/jobs/out_of_memory.h"
#include "core/views/path_kind.h"
#include "ui/form/found_models.h"
#include "ui/form/picker.h"
#include "ui/form/text_fields.h"
#include "ui/manual/manual_window.h"
#include "ui/run_views/run_drag.h"
#include "ui/shell/help.h"
#include "ui/shell/page_area.h"
#include "ui/shell/recovery.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

// What the settings of LoRA come to: "Predicted: 3.19M parameters, 0.122 %, saved in 12.2 MiB".
QString trained_text(const Predictor& predictor) {
  std::optional<train::Trainable> trained;
  if (predictor.design()) trained = predictor.design()->planned.trainable;
  if (!trained && predictor.prediction()) trained = predictor.prediction()->trainable;
  return trained ? MainWindow::tr("Predicted: %1, saved in %2").arg(qs(to_text(*trained)), qs(to_text(trained->file)))
                 : QString();
}

// The software of the shown plan; empty: there is none.
std::optional<model::Stack> planned_stack(const Predictor& predictor) {
  if (!predictor.design() || predictor.is_design_outdated()) return std::nullopt;
  return predictor.design()->request().stack;
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
      session_(setup.session_folder),
      theme_(make_theme(system_shade())),
      context_(setup.resources / "hardware",
               setup.session_folder.empty() ? fs::path() : setup.session_folder / "hardware"),
      runs_(setup.runs_folder, context_.loader()),
      predictor_(context_.loader()),
      actions_(this),
      question_(*this),
      pages_(new QStackedWidget(this)) {
  const QString shade = session_.value(u"theme"_s).toString();
  if (!shade.isEmpty()) theme_ = make_theme(shade == u"dark"_s ? Shade::dark : Shade::light);
  apply_palette(theme_, *qApp);
  setAcceptDrops(true);
  setDockOptions(QMainWindow::AnimatedDocks | QMainWindow::AllowTabbedDocks);
  setTabPosition(Qt::BottomDockWidgetArea, QTabWidget::North);
  build_pages();
  build_docks();
  documents_ = std::make_unique<DocumentActions>(*this, *this, session_, question_);
  undo_ = std::make_unique<UndoActions>(*this);
  run_actions_ = std::make_unique<RunActions>(*this);
  close_guard_ = std::make_unique<CloseGuard>(*this, *this, *documents_, question_, all_pages_);
  register_page_actions();
  for (WindowPage* page : all_pages_) page->attach(*this);
  register_view_actions();
  register_panel_actions();
  build_bars();
  connect_frames();
  connect_document();
  connect_runs();
  connect_problems();
  apply(theme_, *qApp);
  restore();
}

MainWindow::~MainWindow() {
  qApp->disconnect(this);
  // A field that loses the focus ends its gesture, which needs the document.
  if (QWidget* focused = focusWidget()) focused->clearFocus();
  hide();
  clock_.disconnect();
  document_.disconnect();
  runs_.disconnect();
}

void MainWindow::build_pages() {
  const auto add = [this](auto* page) {
    pages_->addWidget(page);
    all_pages_.push_back(page);
    return page;
  };
  design_ = add(new DesignPage(document_, predictor_, context_));
  data_ = add(new DataPage(document_, setup_.runs_folder));
  train_ = add(new TrainPage(runs_));
  serve_ = add(new ServePage(document_, runs_));
  compare_ = add(new ComparePage({setup_.runs_folder, setup_.resources / "results"}, context_.loader()));
  runs_page_ = add(new RunsPage(setup_.runs_folder, runs_.context(), context_.own_folder()));
  connect(compare_, &ComparePage::import_wanted, this, [this](const QString& bundle) {
    compares_imported_ = true;
    runs_page_->import_files({fspath(bundle)});
  });
  connect(runs_page_, &RunsPage::imported, this, [this](const QStringList& runs) {
    if (std::exchange(compares_imported_, false))
      for (const QString& run : runs) compare_->add_run(ss(run));
  });
  setCentralWidget(new PageArea(pages_));
  strip_ = new StatusStrip(predictor_, runs_, this);
  setStatusBar(strip_);
}

void MainWindow::build_docks() {
  const auto dock = [this](const QString& id, const QString& title, QWidget* content, Qt::DockWidgetArea area) {
    auto* added = new QDockWidget(title, this);
    added->setObjectName(id);
    added->setWidget(content);
    added->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
    added->setTitleBarWidget(new QWidget(added));  // the tabs already name the docks
    addDockWidget(area, added);
    return added;
  };
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  panel_ = new ExperimentPanel(document_, setup_.runs_folder);
  add_pickers(panel_->form(), document_, runs_.context());
  add_found_model_pickers(panel_->form(), document_, runs_.context(), setup_.runs_folder);
  connect(panel_, &ExperimentPanel::state_wanted, this, &MainWindow::set_panel_state);
  for (const Page page : {Page::compare, Page::runs}) panel_states_[static_cast<size_t>(page)] = PanelState::folded;
  problems_panel_ = new ProblemsPanel(problems_);
  log_ = new LogPanel;
  jobs_ = new JobsPanel(runs_, actions_);
  experiment_dock_ = dock(u"experiment"_s, tr("Experiment"), panel_, Qt::LeftDockWidgetArea);
  problems_dock_ = dock(u"problems"_s, tr("Problems"), problems_panel_, Qt::BottomDockWidgetArea);
  log_dock_ = dock(u"log"_s, tr("Log"), log_, Qt::BottomDockWidgetArea);
  jobs_dock_ = dock(u"jobs"_s, tr("Jobs"), jobs_, Qt::BottomDockWidgetArea);
  tabifyDockWidget(problems_dock_, log_dock_);
  tabifyDockWidget(log_dock_, jobs_dock_);
  problems_dock_->raise();
  bottom_ = new BottomDocks(*this, {problems_dock_, log_dock_, jobs_dock_});
  resizeDocks({experiment_dock_}, {panel_width_}, Qt::Horizontal);
  resizeDocks({problems_dock_}, {bottom_->height()}, Qt::Vertical);
}

void MainWindow::register_page_actions() {
  const auto add = [this](Page page, const QString& id, const QString& text, const QString& help) {
    const int digit = static_cast<int>(page) + 1;
    actions_.add({u"page."_s + id, text, help, QKeySequence(u"Ctrl+%1"_s.arg(digit))},
                 [this, page] { show_page(page); });
  };
  add(Page::design, u"design"_s, tr("Show Design"), tr("Show mesh, shards, memory, time and cost of the experiment"));
  add(Page::data, u"data"_s, tr("Show Data"), tr("Show rows, tokens, loss masks, lengths, padding and packing"));
  add(Page::train, u"train"_s, tr("Show Train"), tr("Show the charts and samples of a training run"));
  add(Page::serve, u"serve"_s, tr("Show Serve"), tr("Show latency sweeps, and time and memory by batch size"));
  add(Page::compare, u"compare"_s, tr("Show Compare"),
      tr("Show runs and results side by side with the first as baseline"));
  add(Page::runs, u"runs"_s, tr("Show Runs"), tr("Show all runs"));
}

void MainWindow::register_panel_actions() {
  actions_.add({u"view.form"_s, tr("Show the Form"), tr("Edit the experiment as a form"), Qt::ALT | Qt::Key_1},
               [this] { panel_->show_form(); });
  actions_.add({u"view.json"_s, tr("Show the JSON"), tr("Edit the experiment as JSON text"), Qt::ALT | Qt::Key_2},
               [this] { panel_->show_json(); });
  actions_.add({u"view.command"_s, tr("Show the Command Line"), tr("Show the command line of the same run"),
                Qt::ALT | Qt::Key_3},
               [this] { panel_->show_command(); });
  actions_.add({u"view.find"_s, tr("Find a Setting"), tr("Search the settings of the form"), QKeySequence::Find},
               [this] {
                 show_setting({});
                 panel_->form().search()->setFocus();
               });
  actions_.add({u"problems.fix"_s, tr("Fix the Problem"),
                tr("Apply the fix of the selected problem, or the first available fix"), Qt::CTRL | Qt::Key_Period},
               [this] { problems_panel_->fix_first(); });
  actions_.add({u"view.panels"_s, tr("Toggle the Bottom Panels"),
                tr("Expand problems, log and jobs below the page, or collapse them to their tabs"),
                Qt::CTRL | Qt::Key_J, Glyph::panels},
               [this] { bottom_->toggle(); });
  actions_.add(
      {u"panel.experiment"_s, tr("Fold the Experiment Panel"),
       tr("Fold the experiment panel of this page to a narrow rail, or open it"), Qt::ALT | Qt::Key_0},
      [this] { set_panel_state(panel_->state() == PanelState::open ? PanelState::folded : PanelState::open); });
  for (const auto& [dock, text] :
       {std::pair{problems_dock_, tr("Problems")}, {log_dock_, tr("Log")}, {jobs_dock_, tr("Jobs")}})
    actions_.add({u"panel."_s + dock->objectName(), tr("Show %1").arg(text), tr("Show or hide this panel")},
                 [d = dock] {
                   const bool hide = d->isVisible() && !d->visibleRegion().isEmpty();
                   d->setVisible(!hide);
                   if (!hide) d->raise();
                 });
}

void MainWindow::set_panel_state(PanelState state) {
  panel_states_[static_cast<size_t>(page())] = state;
  show_panel_state();
}

void MainWindow::show_panel_state() {
  const PanelState state = panel_states_[static_cast<size_t>(page())];
  if (state == panel_->state()) return;
  if (state == PanelState::folded) panel_width_ = experiment_dock_->width();
  panel_->set_state(state);
  if (state == PanelState::open) resizeDocks({experiment_dock_}, {panel_width_}, Qt::Horizontal);
}

void MainWindow::register_view_actions() {
  actions_.add({u"view.theme"_s, tr("Toggle Dark Theme"), tr("Switch between the light and the dark theme"),
                Qt::CTRL | Qt::SHIFT | Qt::Key_T, Glyph::theme},
               [this] { set_shade(theme_.shade == Shade::dark ? Shade::light : Shade::dark); });
  actions_.add({u"view.palette"_s, tr("Command Palette"), tr("Find a command, setting or run by a few letters"),
                Qt::CTRL | Qt::Key_K, Glyph::command},
               [this] { open_palette(); });
  actions_[u"view.palette"_s]->setShortcuts({Qt::CTRL | Qt::Key_K, Qt::CTRL | Qt::SHIFT | Qt::Key_P});
  actions_.add({u"help.manual"_s, tr("Manual"), tr("Open the manual at the chapter of this page"), Qt::Key_F1},
               [this] { show_manual(); });
  actions_.add({u"help.shortcuts"_s, tr("Keyboard Shortcuts"), tr("List the commands that have a shortcut")},
               [this] { show_shortcuts(*this, actions_); });
  actions_.add({u"help.welcome"_s, tr("Welcome"), tr("Show the three jobs that a new user can start with")},
               [this] { welcome_->open(); });
  actions_.add(
      {u"help.about"_s, tr("About Meshwright"), tr("Show version, licences and the kernels of this processor")},
      [this] { show_about(*this); });
  actions_.add({u"app.quit"_s, tr("Quit"), tr("Close the window and restore unsaved edits at the next start"),
                QKeySequence::Quit},
               [this] { close(); });
}

void MainWindow::build_bars() {
  toolbar_ = new Toolbar(
      *this, [this](QMenu& menu) { documents_->fill_menu(menu); }, this);
  addToolBar(toolbar_);
  QToolButton* panels = flat_button(Glyph::panels, actions_[u"view.panels"_s]->text(), strip_);
  panels->setDefaultAction(actions_[u"view.panels"_s]);
  strip_->addPermanentWidget(panels);
  palette_ = new CommandPalette(this);
  welcome_ = new Welcome(runs_, this);
  connect(welcome_, &Welcome::chosen, this, &MainWindow::start_job);
  connect(welcome_, &Welcome::closed, this, [this](bool again) { session_.set_value(u"welcome"_s, again); });
  undo_->add_stack(&document_.undo_stack());
  for (WindowPage* page : all_pages_) undo_->add_stack(page->active_undo_stack(document_));
  undo_->follow_focus(*experiment_dock_, *pages_);
}

void MainWindow::connect_frames() {
  connect(&clock_, &FrameClock::drain, &runs_, &RunController::drain);
  connect(&clock_, &FrameClock::drain, &predictor_, &Predictor::drain);
  connect(&clock_, &FrameClock::show, this, [this] {
    if (!isVisible()) return;
    for (WindowPage* page : all_pages_) page->show_frame();
    jobs_->show_frame();
    strip_->show_frame();
    welcome_->show_frame();
  });
}

void MainWindow::connect_document() {
  connect(&document_, &Document::changed, this, [this] {
    problems_.set(ProblemSource::document, document_.problems());
    predictor_.request(document_);
    update_actions();
  });
  connect(&document_, &Document::file_changed, this, &MainWindow::update_title);
  connect(close_guard_.get(), &CloseGuard::title_changed, this, &MainWindow::update_title);
  connect(&predictor_, &Predictor::changed, this, [this] {
    if (predictor_.is_stale()) return;
    if (FormRow* mesh = panel_->form().row("mesh"))
      mesh->field()->set_default_text(predictor_.design() && !predictor_.is_design_outdated() && !mesh->is_set()
                                          ? mesh_text(predictor_.design()->request().mesh)
                                          : QString());
    panel_->form().set_note("LoRA", trained_text(predictor_));
    panel_->form().set_stack(planned_stack(predictor_));
    show_predicted_problems();
  });
}

void MainWindow::connect_runs() {
  connect(&runs_, &RunController::shown_changed, this, [this] { log_->show_run(runs_.shown()); });
  connect(&runs_, &RunController::shown_updated, log_, &LogPanel::grow);
  connect(&runs_, &RunController::state_changed, this, &MainWindow::update_actions);
  connect(&runs_, &RunController::state_changed, this, &MainWindow::offer_memory_fixes);
  connect(train_, &TrainPage::snapshot_changed, this,
          [this] { design_->measured().show_snapshot(train_->run(), train_->snapshot(), train_->playhead_mode()); });
}

void MainWindow::connect_problems() {
  connect(&problems_, &ProblemsModel::counted, this, &MainWindow::show_problem_counts);
  // Typing passes through invalid values: the panel must not open and close with every key.
  withdraw_.setSingleShot(true);
  withdraw_.setInterval(1500);
  connect(&withdraw_, &QTimer::timeout, bottom_, &BottomDocks::withdraw);
  connect(problems_panel_, &ProblemsPanel::chosen, this, [this](const Problem& problem) { panel_->go_to(problem); });
  connect(problems_panel_, &ProblemsPanel::fix_wanted, this, [this](const lint::Fix& fix, const QString& id) {
    experiment::Experiment next = document_.experiment();
    planning::apply(next, fix);
    document_.replace(std::move(next), tr("fix of %1").arg(id));
    problems_.clear(ProblemSource::run);  // of the experiment before
  });
  connect(&strip_->error_link(), &ErrorLink::clicked, this, &MainWindow::show_errors);
  for (WindowPage* page : all_pages_)
    if (ErrorLink* link = page->prediction_errors()) connect(link, &ErrorLink::clicked, this, &MainWindow::show_errors);
}

void MainWindow::restore() {
  constexpr QSize kFrame{16, 40};  // of a window, at most: borders and title
  resize(QSize(1280, 800).boundedTo(screen()->availableSize() - kFrame));
  restoreGeometry(session_.value(u"layout/geometry"_s).toByteArray());
  restoreState(session_.value(u"layout/state"_s).toByteArray());
  panel_width_ = session_.value(u"layout/panel_width"_s, panel_width_).toInt();
  const QByteArray folded_panels = session_.value(u"layout/panel_folded"_s).toByteArray();
  if (folded_panels.size() == static_cast<qsizetype>(kPages))
    for (size_t i = 0; i < kPages; ++i)
      panel_states_[i] = folded_panels[static_cast<qsizetype>(i)] == '1' ? PanelState::folded : PanelState::open;
  const QVariant folded = session_.value(u"layout/folded"_s);
  bottom_->restore(
      folded.isNull() ? std::nullopt : std::optional(folded.toBool() ? DockState::collapsed : DockState::expanded),
      session_.value(u"layout/bottom_height"_s, bottom_->height()).toInt());
  for (WindowPage* page : all_pages_) page->restore_state(session_);
  const QVariantList tabs = session_.value(u"layout/tabs"_s).toList();
  const QList<QTabWidget*> widgets = pages_->findChildren<QTabWidget*>();
  for (qsizetype i = 0; i < widgets.size() && tabs.size() == widgets.size(); ++i)
    widgets[i]->setCurrentIndex(tabs[i].toInt());
  documents_->open_first(setup_.experiment);
  problems_.set(ProblemSource::document, document_.problems());
  predictor_.request(document_);
  const int last = session_.value(u"page"_s, -1).toInt();
  const bool elsewhere = planning::planned_elsewhere(document_.experiment());
  show_page(last >= 0 && last < pages_->count() ? static_cast<Page>(last) : elsewhere ? Page::design : Page::train);
  update_title();
}

void MainWindow::remember() {
  session_.set_value(u"layout/geometry"_s, saveGeometry());
  session_.set_value(u"layout/state"_s, saveState());
  if (const auto chosen = bottom_->chosen()) session_.set_value(u"layout/folded"_s, *chosen == DockState::collapsed);
  session_.set_value(u"layout/bottom_height"_s, bottom_->height());
  session_.set_value(u"layout/panel_width"_s,
                     panel_->state() == PanelState::open ? experiment_dock_->width() : panel_width_);
  QByteArray folded_panels;
  for (const PanelState state : panel_states_) folded_panels += state == PanelState::folded ? '1' : '0';
  session_.set_value(u"layout/panel_folded"_s, folded_panels);
  session_.set_value(u"panel_tab"_s, panel_->tab());
  session_.set_value(u"open_run"_s, runs_.shown() ? qs(runs_.shown()->id) : QString());
  QVariantList tabs;
  for (const QTabWidget* widget : pages_->findChildren<QTabWidget*>()) tabs << widget->currentIndex();
  session_.set_value(u"layout/tabs"_s, tabs);
  for (const WindowPage* page : all_pages_) page->save_state(session_);
}

void MainWindow::begin(Start start) {
  offer_recovery(*this, *this, session_, *documents_);
  documents_->open_postponed([this, start] {
    if (start == Start::first || session_.value(u"welcome"_s, false).toBool()) welcome_->open();
    if (start == Start::open) return reopen_runs();
    show_page(Page::train);
    actions_[u"run.start"_s]->trigger();
  });
}

void MainWindow::reopen_runs() {
  panel_->set_tab(session_.value(u"panel_tab"_s, 0).toInt());
  runs_page_->refresh();
  if (const QString run = session_.value(u"open_run"_s).toString(); runs_page_->model().row_of(ss(run)) >= 0)
    runs_.open(ss(run));
  compare_->reopen(session_);
}

void MainWindow::start_job(Job job) {
  const fs::path examples = setup_.resources / "examples";
  switch (job) {
    case Job::design_mesh:
      return documents_->open_example(examples / "paper-train-v5p-8.json", [this] { show_page(Page::design); });
    case Job::watch_run:
      show_page(Page::train);
      if (runs_.live()) return runs_.show_live();
      return documents_->open_example(examples / "tiny-lora.json", [this] { start_run(RunKind::train); });
    case Job::compare_sweeps:
      compare_->add_shipped_results();
      return show_page(Page::compare);
  }
}

void MainWindow::show_page(Page page) {
  // Only the current page limits how small the window can be.
  for (int i = 0; i < pages_->count(); ++i) {
    const auto policy = i == static_cast<int>(page) ? QSizePolicy::Expanding : QSizePolicy::Ignored;
    pages_->widget(i)->setSizePolicy(policy, policy);
  }
  pages_->setCurrentIndex(static_cast<int>(page));
  toolbar_->show_page(page);
  show_panel_state();
  if (page == Page::runs) runs_page_->refresh();
  const auto kind = current_page().run_kind();
  if (kind) runs_.activate(*kind);
  strip_->set_kind(kind.value_or(RunKind::train));
  panel_->command().set_command(current_page().subcommand());
  for (WindowPage* each : all_pages_) each->show_frame();
  undo_->choose_stack();
  update_actions();
}

Page MainWindow::page() const {
  return static_cast<Page>(pages_->currentIndex());
}

Page page_of(RunKind kind) {
  return kind == RunKind::train ? Page::train : Page::serve;
}

void MainWindow::show_kind(RunKind kind) {
  if (kind != RunKind::train) serve_->show_kind(kind);
  show_page(page_of(kind));
}

void MainWindow::show_setting(const std::string& key) {
  raise_panel(u"experiment"_s);
  panel_->show_form();
  if (!key.empty()) panel_->form().focus_key(key);
}

RunKind MainWindow::kind_of_run(const store::RunId& run) const {
  const int row = runs_page_->model().row_of(run);
  return row >= 0 ? kind_of(runs_page_->model().row(row)) : RunKind::train;
}

void MainWindow::open_run(const store::RunId& run) {
  runs_.open(run);
  show_kind(kind_of_run(run));
}

void MainWindow::resume_run(const store::RunId& run) {
  runs_page_->refresh();
  run_actions_->resume(run);
  show_kind(kind_of_run(run));
}

void MainWindow::clone_run(const store::RunId& run) {
  try {
    documents_->open_copy(store::Store(setup_.runs_folder).experiment(run));
  } catch (const Error& error) {
    report(ProblemSource::store, error.problem());
  }
}

void MainWindow::report(ProblemSource source, const Problem& problem) {
  note_event("problem " + problem.id);
  problems_.set(source, {problem});
  raise_panel(u"problems"_s);
}

// A run that ended for want of memory leaves its fixes in the list.
void MainWindow::offer_memory_fixes() {
  const RunPtr run = runs_.shown();
  if (runs_.is_busy() || !run || !run->view.finished() || run->id == offered_fixes_of_) return;
  if (auto failure = jobs::memory_diagnostic(*run->view.finished())) {
    offered_fixes_of_ = run->id;
    problems_.set_diagnostics(ProblemSource::run, {std::move(*failure)});
    raise_panel(u"problems"_s);
  }
}

// Omits problems that the document reports, or the checker with a fix.
void MainWindow::show_predicted_problems() {
  std::vector<Problem> more;
  for (const Problem& p : predictor_.problems())
    if (std::none_of(document_.problems().begin(), document_.problems().end(),
                     [&](const Problem& d) { return d.id == p.id && d.place == p.place; }) &&
        std::none_of(predictor_.diagnostics().begin(), predictor_.diagnostics().end(),
                     [&](const planning::Diagnostic& d) { return d.problem.id == p.id; }))
      more.push_back(p);
  problems_.set(ProblemSource::prediction, more);
  problems_.set_diagnostics(ProblemSource::checker, predictor_.diagnostics());
}

void MainWindow::show_problem_counts() {
  const int errors = problems_.count(Severity::error), warnings = problems_.count(Severity::warning);
  problems_dock_->setWindowTitle(errors + warnings > 0 ? tr("Problems (%1)").arg(errors + warnings) : tr("Problems"));
  bottom_->mark(problems_dock_, errors > 0     ? icon(Glyph::error, IconColor::bad)
                                : warnings > 0 ? icon(Glyph::warning, IconColor::warn)
                                               : QIcon());
  if (errors + warnings > 0) {
    withdraw_.stop();
    bottom_->offer();
  } else {
    withdraw_.start();
  }
  // Errors of the document prevent a prediction; without any, errors of planner or checker do.
  int preventing = problems_.count(Severity::error, {ProblemSource::document});
  if (preventing == 0)
    preventing = problems_.count(Severity::error, {ProblemSource::prediction, ProblemSource::checker});
  strip_->set_errors(preventing);
  for (WindowPage* page : all_pages_)
    if (ErrorLink* link = page->prediction_errors()) link->set_errors(preventing);
}

// Errors come first in the list.
void MainWindow::show_errors() {
  raise_panel(u"problems"_s);
  if (problems_.rowCount() > 0) problems_panel_->choose(0);
  problems_panel_->table().setFocus(Qt::OtherFocusReason);
}

void MainWindow::show_manual() {
  if (!manual_) manual_ = new ManualWindow(setup_.resources / "manual", this);
  manual_->open_chapter(manual_chapter_of(page()));
}

void MainWindow::set_shade(Shade shade) {
  theme_ = make_theme(shade);
  apply(theme_, *qApp);
  session_.set_value(u"theme"_s, shade == Shade::dark ? u"dark"_s : u"light"_s);
  update_actions();
  // Updates colours that widgets have stored.
  for (WindowPage* page : all_pages_) page->restyle();
  log_->show_run(runs_.shown());
  panel_->json().restyle();
  strip_->refresh();
}

void MainWindow::raise_panel(const QString& dock) {
  if (auto* panel = findChild<QDockWidget*>(dock)) {
    panel->show();
    panel->raise();
    panel == experiment_dock_ ? set_panel_state(PanelState::open) : bottom_->set(DockState::expanded);
  }
}

void MainWindow::update_title() {
  setWindowTitle(close_guard_->title_prefix() + document_.title() + u"[*] \u2013 Meshwright"_s);
  setWindowModified(document_.is_dirty());
  toolbar_->show_document(document_);
}

void MainWindow::update_actions() {
  for (WindowPage* page : all_pages_) page->update_actions();
  run_actions_->update();
  panel_->form().set_kind(experiment_kind(run_actions_->next_kind()));
}

std::vector<PaletteEntry> MainWindow::palette_entries() {
  std::vector<PaletteEntry> out;
  for (QAction* a : actions_.all()) {
    if (a->objectName() == u"view.palette"_s) continue;
    out.push_back({a->text(), a->shortcut().toString(QKeySequence::NativeText), [a] { a->trigger(); }, a->isEnabled()});
  }
  for (const experiment::Parameter& p : experiment::parameters())
    out.push_back({tr("Set %1: %2").arg(qs(p.group), qs(p.label)), qs(p.key), [this, key = p.key] {
                     raise_panel(u"experiment"_s);
                     panel_->go_to({.place = key.ends_with(".*") ? key.substr(0, key.size() - 2) : key});
                   }});
  for (WindowPage* page : all_pages_)
    for (PaletteEntry& entry : page->palette_entries()) out.push_back(std::move(entry));
  return out;
}

void MainWindow::open_palette() {
  palette_->open(palette_entries());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  remember();
  if (!close_guard_->is_stopping()) session_.set_value(u"page"_s, pages_->currentIndex());
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

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasFormat(run_mime_type())) event->acceptProposedAction();
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().front().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dragMoveEvent(QDragMoveEvent* event) {
  if (event->mimeData()->hasFormat(run_mime_type()))
    event->setAccepted(takes_runs(event->position().toPoint()));
  else
    event->acceptProposedAction();
}

// On the Compare page and on its toolbar button.
bool MainWindow::takes_runs(QPoint at) const {
  const QToolButton& button = toolbar_->page_button(Page::compare);
  return page() == Page::compare || button.rect().contains(button.mapFrom(this, at));
}

void MainWindow::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  if (event->mimeData()->hasFormat(run_mime_type())) {
    if (!takes_runs(event->position().toPoint())) return;
    for (const store::RunId& run : runs_in(*event->mimeData())) compare_->add_run(run);
    return show_page(Page::compare);
  }
  // The files of one recipe arrive together.
  std::vector<fs::path> scripts;
  for (const QUrl& url : event->mimeData()->urls())
    if (fs::path path = fspath(url.toLocalFile()); views::classify_path(path).kind == views::PathKind::script)
      scripts.push_back(std::move(path));
    else
      open_dropped(path);
  if (!scripts.empty()) documents_->port_recipe(std::move(scripts));
}

void MainWindow::open_dropped(const fs::path& path) {
  const store::RunId run = path.filename().string();
  std::error_code error;  // where one of the two does not exist
  if (runs_page_->model().row_of(run) >= 0 && fs::equivalent(path, setup_.runs_folder / run, error))
    return open_run(run);
  const views::ClassifiedPath found = views::classify_path(path);
  const auto set = [&](const char* key) {
    document_.set(key, found.path.string());
    show_setting(key);
  };
  switch (found.kind) {
    case views::PathKind::experiment:
      return open_file(found.path);
    case views::PathKind::recipe_export:
      return documents_->open_example(found.path);  // saving must not change the export
    case views::PathKind::model:
      return set("model.path");
    case views::PathKind::adapter:
      return set("lora.adapter");
    case views::PathKind::dataset:
      set("data.path");
      return show_page(Page::data);
    case views::PathKind::script:
      return documents_->port_recipe({found.path});
    case views::PathKind::result:
      compare_->add_file(found.path);
      return show_page(Page::compare);
    case views::PathKind::orbax:
      return report(ProblemSource::file,
                    {.id = "ORBAX-CONVERT",
                     .message = "the engine does not read Orbax checkpoints",
                     .file = found.path.string(),
                     .fix = "convert its adapter with `meshwright convert --adapter DIR --out DIR`, "
                            "or merge it with `meshwright merge`, and open the result"});
    case views::PathKind::other:
      runs_page_->import_files({path});
      return show_page(Page::runs);
  }
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  train_->show_frame();
  serve_->show_frame();
}

}  // namespace mw::ui

#include "moc_main_window.cpp"
