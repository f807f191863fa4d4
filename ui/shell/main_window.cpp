// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QMimeData>
#include <QScreen>
#include <QStackedWidget>
#include <QToolButton>

#include "core/base/files.h"
#include "ui/run_views/run_mime.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {
Pricer::Folders hardware_folders(const WindowSetup& setup) {
  return {setup.resources / "hardware", setup.session_folder.empty() ? fs::path() : setup.session_folder / "hardware"};
}
}  // namespace

MainWindow::MainWindow(const WindowSetup& setup)
    : setup_(setup),
      session_(setup.session_folder),
      theme_(make_theme(system_shade())),
      runs_(setup.runs_folder,
            [f = hardware_folders(setup)] { return hardware::Catalogue::load(f.hardware, f.own_hardware); }),
      pricer_(hardware_folders(setup)),
      calibrator_(hardware_folders(setup)),
      actions_(this),
      pages_(new QStackedWidget(this)) {
  const QString shade = session_.value(u"theme"_s).toString();
  if (!shade.isEmpty()) theme_ = make_theme(shade == u"dark"_s ? Shade::dark : Shade::light);
  apply(theme_, *qApp);
  setAcceptDrops(true);
  setDockOptions(QMainWindow::AnimatedDocks | QMainWindow::AllowTabbedDocks);
  setTabPosition(Qt::BottomDockWidgetArea, QTabWidget::North);
  build_pages();
  build_docks();
  build_actions();
  build_toolbar();
  palette_ = new CommandPalette(this);
  calibrate_ = new CalibrateDialog(calibrator_, setup_.runs_folder, this);
  proof_window_ = new ProofWindow(views::prove_view, this);
  build_elsewhere();
  build_undo();
  wire();
  resize(1280, 800);
  restoreGeometry(session_.value(u"layout/geometry"_s).toByteArray());
  restoreState(session_.value(u"layout/state"_s).toByteArray());
  const QVariant folded = session_.value(u"layout/folded"_s);
  bottom_->restore(folded.isNull() ? std::nullopt : std::optional(folded.toBool() ? Fold::folded : Fold::open),
                   session_.value(u"layout/bottom_height"_s, bottom_->height()).toInt());
  design_->restore_layout(session_.value(u"layout/design"_s).toByteArray());
  data_->restore_layout(session_.value(u"layout/data"_s).toByteArray());
  train_->restore_layout(session_.value(u"layout/train"_s).toByteArray());
  serve_->sizes().restore_layout(session_.value(u"layout/serve"_s).toByteArray());
  serve_->sweep().restore_layout(session_.value(u"layout/sweep"_s).toByteArray());
  serve_->setCurrentIndex(session_.value(u"layout/serve_tab"_s, 0).toInt());
  compare_->restore_layout(session_.value(u"layout/compare"_s).toByteArray());
  runs_page_->restore_layout(session_.value(u"layout/runs"_s).toByteArray());
  first_document();
  const int last = session_.value(u"page"_s, -1).toInt();
  const bool elsewhere = planning::planned_elsewhere(document_.experiment());
  show_page(last >= 0 && last < pages_->count() ? static_cast<Page>(last) : elsewhere ? Page::design : Page::train);
  update_title();
  update_actions();
}

MainWindow::~MainWindow() {
  qApp->disconnect(this);
  // Before the document goes: a field that loses the focus ends its gesture.
  if (QWidget* focused = focusWidget()) focused->clearFocus();
  hide();
  clock_.disconnect();
  document_.disconnect();
  document_.undo_stack().disconnect();  // it speaks while it is cleared
  runs_page_->undo_stack().disconnect();
  undo_group_.disconnect();
  runs_.disconnect();
}

void MainWindow::build_pages() {
  design_ = new DesignPage(document_, pricer_, hardware_folders(setup_));
  data_ = new DataPage(document_);
  train_ = new TrainPage(runs_);
  serve_ = new ServePage(document_, runs_);
  compare_ = new ComparePage({setup_.runs_folder, setup_.resources / "results", hardware_folders(setup_).hardware,
                              hardware_folders(setup_).own_hardware});
  runs_page_ = new RunsPage(setup_.runs_folder);
  pages_->addWidget(design_);
  pages_->addWidget(data_);
  pages_->addWidget(train_);
  pages_->addWidget(serve_);
  pages_->addWidget(compare_);
  pages_->addWidget(runs_page_);
  setCentralWidget(pages_);
  strip_ = new StatusStrip(pricer_, runs_, this);
  setStatusBar(strip_);
}

void MainWindow::build_docks() {
  const auto dock = [this](const QString& id, const QString& title, QWidget* content, Qt::DockWidgetArea area) {
    auto* d = new QDockWidget(title, this);
    d->setObjectName(id);
    d->setWidget(content);
    d->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
    d->setTitleBarWidget(new QWidget(d));  // tabs and the form's own tabs already say what it is
    addDockWidget(area, d);
    return d;
  };
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  panel_ = new ExperimentPanel(document_, setup_.runs_folder);
  problems_panel_ = new ProblemsPanel(problems_);
  log_ = new LogPanel;
  jobs_ = new JobsPanel(runs_);
  experiment_dock_ = dock(u"experiment"_s, tr("Experiment"), panel_, Qt::LeftDockWidgetArea);
  problems_dock_ = dock(u"problems"_s, tr("Problems"), problems_panel_, Qt::BottomDockWidgetArea);
  log_dock_ = dock(u"log"_s, tr("Log"), log_, Qt::BottomDockWidgetArea);
  jobs_dock_ = dock(u"jobs"_s, tr("Jobs"), jobs_, Qt::BottomDockWidgetArea);
  tabifyDockWidget(problems_dock_, log_dock_);
  tabifyDockWidget(log_dock_, jobs_dock_);
  problems_dock_->raise();
  bottom_ = new BottomFold(*this, {problems_dock_, log_dock_, jobs_dock_});
  resizeDocks({experiment_dock_}, {318}, Qt::Horizontal);
  resizeDocks({problems_dock_}, {bottom_->height()}, Qt::Vertical);
}

void MainWindow::show_page(Page page) {
  pages_->setCurrentIndex(static_cast<int>(page));
  for (size_t i = 0; i < page_buttons_.size(); ++i) page_buttons_[i]->setChecked(i == static_cast<size_t>(page));
  if (page == Page::runs) runs_page_->refresh();
  if (page == Page::train) runs_.look_at(RunKind::train);
  if (page == Page::serve) runs_.look_at(serve_->kind());
  strip_->set_about(page == Page::serve ? serve_->kind() : RunKind::train);
  panel_->set_command(page == Page::serve    ? serve_->kind() == RunKind::size ? u"size"_s : u"sweep"_s
                      : page == Page::design ? u"plan"_s
                                             : u"run"_s);
  design_->show_frame();
  data_->show_frame();
  train_->show_frame();
  serve_->show_frame();
  choose_undo_stack();
  update_actions();
}

Page MainWindow::page() const {
  return static_cast<Page>(pages_->currentIndex());
}

Page page_of(RunKind kind) {
  return kind == RunKind::train ? Page::train : Page::serve;
}

void MainWindow::set_shade(Shade shade) {
  theme_ = make_theme(shade);
  apply(theme_, *qApp);
  session_.set_value(u"theme"_s, shade == Shade::dark ? u"dark"_s : u"light"_s);
  update_actions();
  // Colours that were handed out.
  design_->restyle();
  data_->restyle();
  train_->restyle();
  serve_->restyle();
  compare_->restyle();
  calibrate_->restyle();
  log_->show_run(runs_.shown());
  proof_window_->restyle();
  panel_->json().restyle();
  strip_->refresh();
}

void MainWindow::raise_panel(const QString& dock) {
  if (auto* d = findChild<QDockWidget*>(dock)) {
    d->show();
    d->raise();
    if (d != experiment_dock_) bottom_->set(Fold::open);
  }
}

void MainWindow::update_title() {
  const RunPtr live = runs_.live();
  const QString until = closing_ != Closing::when_done ? QString()
                        : live ? tr("Closes after %1, %2 \u2013 ").arg(qs(live->id), steps_text(live->view))
                               : tr("Closes when its work is done \u2013 ");
  setWindowTitle(until + document_.title() + u"[*] \u2013 Meshwright"_s);
  setWindowModified(document_.dirty());
  if (!file_button_) return;
  const QString name = document_.title() + (document_.dirty() ? u" \u2022"_s : QString());
  file_button_->setText(file_button_->fontMetrics().elidedText(name, Qt::ElideMiddle, 240));
  file_button_->setToolTip(document_.file().empty() ? tr("Not saved in a file yet") : qpath(document_.file()));
}

void MainWindow::update_actions() {
  const RunPtr live = runs_.live();
  const bool paused = live && live->view.state() == RunState::paused;
  QAction* run = actions_[u"run.start"_s];
  run->setEnabled(!live);
  const RunKind kind = page() == Page::serve ? serve_->kind() : kind_of(document_.experiment());
  const QString help = kind == RunKind::size    ? tr("Measure time and memory of this experiment's model by batch size")
                       : kind == RunKind::sweep ? tr("Sweep request rates and prompt lengths of this experiment")
                                                : tr("Train this experiment on this machine");
  run->setToolTip(tr("%1 (%2)").arg(help, run->shortcut().toString(QKeySequence::NativeText)));
  for (const auto& id : {u"run.size"_s, u"run.sweep"_s, u"run.launch"_s}) actions_[id]->setEnabled(!live);
  actions_[u"run.detach"_s]->setEnabled(runs_.elsewhere());
  actions_[u"run.prove"_s]->setEnabled(!live && !proof_window_->task().busy());
  QAction* pause = actions_[u"run.pause"_s];
  pause->setEnabled(live && !runs_.stopping() && !runs_.elsewhere());
  pause->setText(paused ? tr("Continue") : tr("Pause"));
  pause->setIcon(icon(paused ? Glyph::run : Glyph::pause));
  actions_[u"run.stop"_s]->setEnabled(live && !runs_.stopping());
  for (const auto& id : {u"design.both"_s, u"design.swap"_s}) actions_[id]->setEnabled(design_->pinned());
  actions_[u"design.pin"_s]->setText(design_->pinned() ? tr("Unpin the Design") : tr("Pin the Design"));
}

void MainWindow::remember() {
  session_.set_value(u"layout/geometry"_s, saveGeometry());
  session_.set_value(u"layout/state"_s, saveState());
  if (const auto chosen = bottom_->chosen()) session_.set_value(u"layout/folded"_s, *chosen == Fold::folded);
  session_.set_value(u"layout/bottom_height"_s, bottom_->height());
  session_.set_value(u"layout/design"_s, design_->save_layout());
  session_.set_value(u"layout/data"_s, data_->save_layout());
  session_.set_value(u"layout/train"_s, train_->save_layout());
  session_.set_value(u"layout/serve"_s, serve_->sizes().save_layout());
  session_.set_value(u"layout/sweep"_s, serve_->sweep().save_layout());
  session_.set_value(u"layout/serve_tab"_s, serve_->currentIndex());
  session_.set_value(u"layout/compare"_s, compare_->save_layout());
  session_.set_value(u"layout/runs"_s, runs_page_->save_layout());
  session_.set_value(u"launch"_s, launch_->remembered());
  session_.set_value(u"export/recipe"_s, export_->last_recipe());
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

void MainWindow::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  if (event->mimeData()->hasFormat(run_mime_type())) {
    if (takes_runs(event->position().toPoint())) compare(runs_in(*event->mimeData()));
    return;
  }
  open_file(fspath(event->mimeData()->urls().front().toLocalFile()));
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  train_->show_frame();
  serve_->show_frame();
}

}  // namespace mw::ui
