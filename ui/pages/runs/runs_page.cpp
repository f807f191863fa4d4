// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/runs_page.h"

#include <QDesktopServices>
#include <QMenu>
#include <QScrollBar>
#include <QShortcut>
#include <QTimer>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/experiment/bound_experiment.h"
#include "core/import/bundle.h"
#include "core/import/import_files.h"
#include "core/launch/launch.h"
#include "core/report/report.h"
#include "core/store/store.h"
#include "ui/session/action_registry.h"
#include "ui/session/run_controller.h"
#include "ui/session/session.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {

constexpr qint64 kRefreshMs = 1500;
constexpr int kNameWidth = 116;                // minimum; narrower windows scroll
constexpr int kHeaderAir = 16, kCellAir = 11;  // padding
constexpr int kFittedRows = 64;                // from the first visible one: more than a window shows
}  // namespace

// Deletes runs or restores deleted ones.
class MoveRuns : public QUndoCommand {
 public:
  MoveRuns(RunsPage& page, std::vector<store::RunId> runs, store::Trash to)
      : QUndoCommand((to == store::Trash::deleted ? RunsPage::tr("deletion of %1") : RunsPage::tr("restoration of %1"))
                         .arg(runs.size() == 1 ? qs(runs.front())
                                               : RunsPage::tr("%n run(s)", nullptr, plural_count(runs.size())))),
        page_(page),
        runs_(std::move(runs)),
        to_(to) {}
  void undo() override {
    page_.move_runs(runs_, to_ == store::Trash::deleted ? store::Trash::kept : store::Trash::deleted);
  }
  void redo() override { page_.move_runs(runs_, to_); }

 private:
  RunsPage& page_;
  std::vector<store::RunId> runs_;
  store::Trash to_;
};

RunsPage::RunsPage(const std::filesystem::path& runs_folder, plan::LoadContext context,
                   std::filesystem::path hardware_folder, QWidget* parent)
    : QWidget(parent),
      folder_(runs_folder),
      context_(context),
      hardware_folder_(std::move(hardware_folder)),
      model_(new RunsModel(runs_folder, std::move(context), this)),
      proxy_(new RunsFilter(this)),
      preview_(new RunPreviewPanel(this)),
      rows_(make_splitter(Qt::Vertical, this)),
      table_(make_table(*proxy_, tr("Runs"), this)),
      filter_(new QLineEdit(this)),
      open_(new QPushButton(tr("Open"), this)),
      clone_(new QPushButton(tr("Clone"), this)),
      resume_(new QPushButton(tr("Resume"), this)),
      compare_(new QPushButton(tr("Compare"), this)),
      import_(new QPushButton(tr("Import\u2026"), this)),
      delete_(new QPushButton(tr("Delete"), this)),
      trash_(chip_button(tr("Show Deleted"), tr("List deleted runs, so that they can be restored"), this)),
      notice_(new QFrame(this)),
      notice_text_(new QLabel(notice_)),
      empty_(show_when_empty(*table_, {})) {
  setObjectName(u"pageBody"_s);
  auto* column = make_layout<QVBoxLayout>(this, {8, 6, 8, 6}, 6);
  build_toolbar();
  build_table();
  notice_->setObjectName(u"notice"_s);
  auto* row = make_layout<QHBoxLayout>(notice_, {10, 4, 6, 4});
  auto* undo = new QPushButton(tr("Undo"), notice_);
  QToolButton* close = flat_button(Glyph::close, tr("Close this message"), notice_);
  row->addWidget(notice_text_, 1);
  row->addWidget(undo);
  row->addWidget(close);
  notice_->hide();
  column->addWidget(notice_);
  connect(undo, &QPushButton::clicked, this, &RunsPage::undo_delete);
  connect(close, &QToolButton::clicked, notice_, &QWidget::hide);
  const auto recount = [this] {
    empty_->setText(model_->rowCount() > 0                     ? tr("No run matches the filter")
                    : model_->trash() == store::Trash::deleted ? tr("No deleted runs")
                                                               : tr("No runs yet; every run you start is listed here"));
    fit_numbers();
    update_buttons();
    previewed_.clear();
    show_preview();
  };
  connect(model_, &RunsModel::about_to_refresh, this, [this] {
    const QModelIndex top = table_->verticalScrollBar()->value() > 0 ? table_->indexAt({0, 0}) : QModelIndex();
    top_ = top.isValid() ? ss(top.data(RunsModel::id_role).toString()) : store::RunId();
  });
  connect(model_, &RunsModel::refreshed, this, [this, recount] {
    recount();
    if (const int at = top_.empty() ? -1 : model_->row_of(top_); at >= 0)
      table_->scrollTo(proxy_->mapFromSource(model_->index(at, 0)), QAbstractItemView::PositionAtTop);
  });
  connect(filter_, &QLineEdit::textChanged, this, [this, recount](const QString& words) {
    proxy_->set_words(words);
    recount();
  });
  connect(proxy_, &QAbstractItemModel::layoutChanged, this, &RunsPage::fit_numbers);  // sorted
  connect(table_->verticalScrollBar(), &QScrollBar::valueChanged, this, &RunsPage::fit_numbers);
  model_->refresh();
  recount();
}

void RunsPage::attach(Workspace& workspace) {
  workspace_ = &workspace;
  register_actions(workspace);
  connect(this, &RunsPage::run_deleted, this,
          [&workspace](const QString& run) { workspace.runs().close_shown(ss(run)); });
  connect(this, &RunsPage::problem, this, [&workspace](const Problem& p) { workspace.report(ProblemSource::file, p); });
  connect(model_, &RunsModel::problem, this,
          [&workspace](const Problem& p) { workspace.report(ProblemSource::store, p); });
  connect(&workspace.runs(), &RunController::state_changed, this, [this] { refreshed_.invalidate(); });
}

void RunsPage::register_actions(Workspace& workspace) {
  ActionRegistry& actions = workspace.actions();
  actions.add({u"runs.import"_s, tr("Import Results…"),
               tr("Import results of a serving benchmark, the log of another trainer or a bundle as runs")},
              [this, &workspace] {
                workspace.show_page(Page::runs);
                choose_import();
              });
  actions.add({u"plan.accuracy"_s, tr("Accuracy of Predictions…"),
               tr("Show predicted and measured values of every published measurement, with errors and intervals")},
              [this, &workspace] {
                if (!accuracy_) accuracy_ = new AccuracyDialog(workspace.resources(), context_, this);
                workspace.show_page(Page::runs);
                accuracy_->show_accuracy();
              });
  actions.add({u"runs.benchmark"_s, tr("Benchmark This Machine…"),
               tr("Measure peak rates, prefill, decoding and LoRA steps of this machine, and save them as a run")},
              [this, &workspace] {
                workspace.show_page(Page::runs);
                show_benchmark(workspace.document());
              });
  actions.add({u"runs.undo_delete"_s, tr("Undo Deletion of Runs"), tr("Restore the runs that were deleted last")},
              [this] { undo_delete(); });
}

void RunsPage::show_benchmark(const Document& document) {
  if (!benchmark_) {
    benchmark_ = new BenchmarkDialog(folder_, hardware_folder_, this);
    connect(benchmark_, &BenchmarkDialog::saved, this, [this](const QString& run) {
      refresh();
      select(ss(run));
    });
  }
  benchmark_->open_with(document.experiment().valid_values().model.path);
}

void RunsPage::show_frame() {
  if (!isVisible() || (refreshed_.isValid() && refreshed_.elapsed() <= kRefreshMs)) return;
  refreshed_.start();
  refresh();
}

void RunsPage::save_state(Session& session) const {
  session.set_value(u"layout/runs_table"_s, table_->horizontalHeader()->saveState());
  session.set_value(u"layout/runs_rows"_s, rows_->saveState());
}

void RunsPage::restore_state(const Session& session) {
  rows_->restoreState(session.value(u"layout/runs_rows"_s).toByteArray());
  const QByteArray state = session.value(u"layout/runs_table"_s).toByteArray();
  if (!state.isEmpty() && table_->horizontalHeader()->restoreState(state)) fit_name();
}

std::vector<PaletteEntry> RunsPage::palette_entries() {
  refresh();
  std::vector<PaletteEntry> entries;
  for (int i = 0; i < model_->rowCount(); ++i) {
    const views::ListedRun& r = model_->row(i);
    entries.push_back(
        {tr("Open Run %1").arg(qs(r.shown_name)), qs(r.id), [this, id = r.id] { workspace_->open_run(id); }});
  }
  return entries;
}

void RunsPage::build_toolbar() {
  auto* row = new QHBoxLayout;
  row->setSpacing(6);
  filter_->setPlaceholderText(tr("Filter by name, model, state or tag"));
  filter_->setAccessibleName(tr("Filter runs"));
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(420);
  filter_->addAction(icon(Glyph::search), QLineEdit::LeadingPosition);
  row->addWidget(filter_, 8);
  row->addStretch(1);
  open_->setToolTip(tr("Show the run on its page (Enter)"));
  clone_->setToolTip(tr("Load the experiment of the run into the form"));
  resume_->setToolTip(
      tr("Continue a stopped or interrupted run from its last checkpoint, or reattach to a launched job"));
  delete_->setToolTip(tr("Delete the selected runs, which can be undone (Del)"));
  compare_->setToolTip(
      tr("Compare the selected runs instead of the current ones (Ctrl+Shift+C); rows can also be dragged to the "
         "Compare page"));
  import_->setToolTip(tr(
      "Import results of vLLM bench, GuideLLM, AIPerf, SGLang and other benchmarks, the log of another trainer, or a "
      "bundle"));
  for (QPushButton* b : {open_, clone_, resume_, compare_, import_}) row->addWidget(b);
  row->addSpacing(16);  // separates the destructive buttons
  row->addWidget(delete_);
  row->addWidget(trash_);
  static_cast<QVBoxLayout*>(layout())->addLayout(row);
  connect(open_, &QPushButton::clicked, this, [this] { workspace_->open_run(current()); });
  connect(clone_, &QPushButton::clicked, this, [this] { workspace_->clone_run(current()); });
  connect(resume_, &QPushButton::clicked, this, [this] { workspace_->resume_run(current()); });
  connect(compare_, &QPushButton::clicked, this, trigger(u"runs.compare"_s));
  connect(import_, &QPushButton::clicked, this, &RunsPage::choose_import);
  connect(&importing_, &BackgroundWork::ended, this, &RunsPage::show_imported);
  connect(&verifying_, &BackgroundWork::ended, this, &RunsPage::show_verified);
  connect(&exporting_, &BackgroundWork::ended, this, &RunsPage::show_exported);
  connect(delete_, &QPushButton::clicked, this, &RunsPage::delete_selected);
  connect(trash_, &QToolButton::toggled, this, [this](bool on) {
    model_->set_trash(on ? store::Trash::deleted : store::Trash::kept);
    delete_->setText(on ? tr("Restore") : tr("Delete"));
    update_buttons();
  });
}

void RunsPage::import_files(const std::vector<std::filesystem::path>& files) {
  to_import_.insert(to_import_.end(), files.begin(), files.end());
  if (importing_.is_busy()) return;
  importing_.start(
      [folder = folder_, all = std::exchange(to_import_, {})](const ReportProgress&, const std::stop_token& stop) {
        Imported imported;
        for (const auto& file : all) {
          if (stop.stop_requested()) break;
          try {
            for (auto& one : importing::import_files(folder, {file})) imported.runs.push_back(std::move(one.run));
          } catch (const Error& error) {
            imported.problems.push_back(error.problem());
          } catch (const std::exception& error) {
            imported.problems.push_back({.id = "INTERNAL", .message = error.what()});
          }
        }
        return imported;
      });
}

void RunsPage::show_imported() {
  if (const auto& imported = importing_.result()) {
    for (const Problem& p : imported->problems) emit problem(p);
    if (!imported->runs.empty()) {
      refresh();
      select(imported->runs.front());
    }
    QStringList runs;
    for (const store::RunId& run : imported->runs) runs << qs(run);
    emit this->imported(runs);
  }
  if (!to_import_.empty()) import_files({});
}

void RunsPage::build_table() {
  proxy_->setSourceModel(model_);
  table_->setSortingEnabled(true);
  table_->sortByColumn(RunsModel::created, Qt::DescendingOrder);
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setEditTriggers(QAbstractItemView::EditKeyPressed);
  table_->setContextMenuPolicy(Qt::CustomContextMenu);
  table_->setDragEnabled(true);
  table_->setDragDropMode(QAbstractItemView::DragOnly);
  table_->verticalHeader()->setDefaultSectionSize(24);
  QHeaderView* header = table_->horizontalHeader();
  header->setSectionsMovable(true);
  header->setResizeContentsPrecision(kFittedRows);
  // Widths of typical long texts; the name column takes the rest.
  const QString widest[] = {u"run-000"_s,
                            {},
                            u"Interrupted"_s,
                            u"2xh100"_s,
                            u"r16, lr 0.0002"_s,
                            u"0.0000"_s,
                            u"0.0000"_s,
                            u"00 of 00"_s,
                            u"000 / 0000"_s,
                            u"0:00:00"_s,
                            u"$0.00"_s,
                            u"00.0 k"_s,
                            u"000 MiB"_s,
                            u"tag"_s,
                            u"00-00 00:00"_s,
                            u"base-model"_s,
                            u"lora r16"_s,
                            u"000 k"_s,
                            u"0.00M parameters, 0.000 %, 00.0 MiB"_s,
                            u"measured"_s};
  header->setContextMenuPolicy(Qt::ActionsContextMenu);
  for (int c = 0; c < model_->columnCount(); ++c) {
    const QString title = model_->headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
    const int title_width = header->fontMetrics().horizontalAdvance(title) + kHeaderAir;
    const int text_width = table_->fontMetrics().horizontalAdvance(widest[c]) + kCellAir;
    table_->setColumnWidth(c, std::max(title_width, text_width));
    if (c == RunsModel::name) continue;
    auto* shown = new QAction(title, header);
    shown->setCheckable(true);
    shown->setChecked(c < RunsModel::created);
    header->addAction(shown);
    table_->setColumnHidden(c, !shown->isChecked());
    connect(shown, &QAction::toggled, this, [this, c](bool on) {
      table_->setColumnHidden(c, !on);
      fit_name();
    });
  }
  connect(header, &QHeaderView::sectionResized, this, [this](int column) {
    if (column != RunsModel::name) fit_name();
  });
  table_->viewport()->installEventFilter(this);
  rows_->addWidget(table_);
  rows_->addWidget(preview_);
  rows_->setChildrenCollapsible(false);
  set_shares(*rows_, {420, 190}, {3, 1});
  static_cast<QVBoxLayout*>(layout())->addWidget(rows_, 1);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
    if (model_->is_refreshing()) return;  // refreshed() follows
    update_buttons();
    show_preview();
  });
  connect(table_, &QTableView::doubleClicked, this, [this](const QModelIndex& at) {
    if (at.column() == RunsModel::tags)
      table_->edit(at);
    else
      workspace_->open_run(ss(at.data(RunsModel::id_role).toString()));
  });
  connect(table_, &QTableView::customContextMenuRequested, this, [this](const QPoint& at) {
    if (!selected().empty()) make_menu()->popup(table_->viewport()->mapToGlobal(at));
  });
  const auto key = [this](QKeySequence keys, auto slot) {
    auto* s = new QShortcut(keys, table_);
    s->setContext(Qt::WidgetShortcut);
    connect(s, &QShortcut::activated, this, slot);
  };
  key(Qt::Key_Delete, &RunsPage::delete_selected);
  const auto open = [this] {
    if (!current().empty()) workspace_->open_run(current());
  };
  key(Qt::Key_Return, open);
  key(Qt::Key_Enter, open);
}

store::RunId RunsPage::current() const {
  const auto all = selected();
  return all.empty() ? store::RunId() : all.front();
}

std::vector<store::RunId> RunsPage::selected() const {
  std::vector<store::RunId> out;
  for (const QItemSelectionRange& rows : table_->selectionModel()->selection())
    for (int row = rows.top(); row <= rows.bottom(); ++row)
      out.push_back(model_->row(proxy_->mapToSource(proxy_->index(row, 0)).row()).id);
  return out;
}

void RunsPage::select(const store::RunId& run) {
  const QModelIndex at = proxy_->mapFromSource(model_->index(std::max(0, model_->row_of(run)), 0));
  if (model_->row_of(run) < 0 || !at.isValid()) return;
  table_->selectRow(at.row());
  table_->scrollTo(at);
}

bool RunsPage::resumable(const store::RunId& run) const {
  const int at = model_->row_of(run);
  if (at < 0) return false;
  const store::RunRow& r = model_->row(at);
  if (r.source == "imported") return has_detached_job(r);
  return r.method != "size" && (r.state == RunState::cancelled || r.state == RunState::failed) &&
         (r.steps_total == 0 || r.steps_done < r.steps_total);  // 0: ended before its epochs were counted
}

// Whether its remote job is or may be running.
bool RunsPage::has_detached_job(const store::RunRow& row) const {
  return row.state == RunState::running && launch::was_launched(folder_, row.id);
}

void RunsPage::update_buttons() {
  const auto all = selected();
  const bool kept = model_->trash() == store::Trash::kept;
  open_->setEnabled(all.size() == 1);
  clone_->setEnabled(all.size() == 1);
  compare_->setEnabled(!all.empty() && kept);
  resume_->setEnabled(all.size() == 1 && kept && resumable(all.front()));
  const bool running = std::any_of(all.begin(), all.end(), [this](const store::RunId& run) {
    const int at = model_->row_of(run);
    return at >= 0 && (model_->row(at).state == RunState::running || model_->row(at).state == RunState::paused);
  });
  delete_->setEnabled(!all.empty() && !running);
}

void RunsPage::delete_selected() {
  const auto all = selected();
  if (all.empty() || !delete_->isEnabled()) return;
  const bool restores = model_->trash() == store::Trash::deleted;
  undo_.push(new MoveRuns(*this, all, restores ? store::Trash::kept : store::Trash::deleted));
  if (restores) return;
  notice_text_->setText(all.size() == 1 ? tr("%1 was moved to the trash.").arg(qs(all.front()))
                                        : tr("%n runs were moved to the trash.", nullptr, plural_count(all.size())));
  notice_->show();
}

void RunsPage::choose_import() {
  open_file_dialog(this,
                   {.title = tr("Import Results"),
                    .filters = tr("Results, logs and bundles (*.json *.jsonl *.csv *.txt *.log *.zst);;Any file (*)"),
                    .mode = QFileDialog::ExistingFiles},
                   [this](const auto& files) { import_files(files); });
}

void RunsPage::move_runs(const std::vector<store::RunId>& runs, store::Trash to) {
  notice_->hide();  // refers to an earlier deletion
  model_->set_deleted(runs, to);
  if (to == store::Trash::deleted)
    for (const auto& run : runs) emit run_deleted(qs(run));
  else
    select(runs.front());
}

QMenu* RunsPage::make_menu() {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto button = [&](QPushButton* b) {
    menu->addAction(b->text(), b, &QPushButton::click)->setEnabled(b->isEnabled());
  };
  const bool one = selected().size() == 1, kept = model_->trash() == store::Trash::kept;
  const auto entry = [&](const QString& text, bool enabled, auto run) {
    menu->addAction(text, this, run)->setEnabled(enabled);
  };
  const auto edit = [this](int column) {
    return [this, column] { table_->edit(table_->selectionModel()->selectedRows().value(0).siblingAtColumn(column)); };
  };
  for (QPushButton* b : {open_, clone_, resume_}) button(b);
  menu->addSeparator();
  button(compare_);
  entry(tr("Add to Current Comparison"), compare_->isEnabled(), trigger(u"runs.compare_add"_s));
  entry(tr("Predicted and Measured\u2026"), one && kept, trigger(u"run.residuals"_s));
  entry(tr("Accuracy of Predictions\u2026"), true, trigger(u"plan.accuracy"_s));
  entry(tr("Benchmark This Machine\u2026"), true, trigger(u"runs.benchmark"_s));
  menu->addSeparator();
  entry(tr("Export as a Recipe\u2026"), one, [this] { open_then(u"file.export"_s); });
  const bool exports = !selected().empty() && kept && !exporting_.is_busy();
  entry(tr("Export Report\u2026"), exports, [this] {
    choose_export({.title = tr("Export Report"),
                   .start = u"report.html"_s,
                   .filters = tr("HTML report (*.html)"),
                   .suffix = u"html"_s},
                  &RunsPage::export_report);
  });
  entry(tr("Export Bundle\u2026"), exports, [this] {
    choose_export({.title = tr("Export Bundle"),
                   .start = u"runs"_s + QLatin1StringView(importing::kBundleExtension),
                   .filters = tr("Bundle (*%1)").arg(QLatin1StringView(importing::kBundleExtension))},
                  &RunsPage::export_bundle);
  });
  entry(tr("Merge the Adapter\u2026"), one && kept, [this] { open_then(u"run.merge"_s); });
  entry(tr("Open Folder"), one,
        [this] { QDesktopServices::openUrl(QUrl::fromLocalFile(qpath(model_->folder_of(current())))); });
  entry(tr("Verify"), one && !verifying_.is_busy(), [this] { verify(current()); });
  menu->addSeparator();
  entry(tr("Rename"), one, edit(RunsModel::name));
  entry(tr("Edit Tags"), one, edit(RunsModel::tags));
  menu->addSeparator();
  button(delete_);
  if (!kept) entry(tr("Delete Permanently\u2026"), true, [this] { purge_selected(); });
  return menu;
}

void RunsPage::verify(const store::RunId& run) {
  if (run.empty() || verifying_.is_busy()) return;
  verifying_.start(
      with_store(folder_, [run](const store::Store& store, const ReportProgress&, const std::stop_token& stop) {
        return Verified{run, store::verify_chain(store, run, stop)};
      }));
}

void RunsPage::show_verified() {
  if (verifying_.problem()) emit problem(*verifying_.problem());
  if (!verifying_.result()) return;
  const auto& [run, report] = *verifying_.result();
  if (report.state != store::ChainState::broken) return show_toast(*this, qs(to_text(report, run)));
  emit problem({.id = "CHAIN",
                .message = "the record of " + run + " is broken at " + report.broken + ": " + report.reason,
                .place = report.place,
                .fix = "restore the store or the checkpoint from a copy; " + counted(report.events, "event") +
                       " before are intact"});
}

void RunsPage::choose_export(const FileDialogOptions& options, Export run) {
  FileDialogOptions saved = options;
  saved.mode = QFileDialog::AnyFile;
  saved.accept = QFileDialog::AcceptSave;
  open_file_dialog(this, saved, [this, run](const auto& files) { (this->*run)(files.front()); });
}

void RunsPage::export_report(const std::filesystem::path& file) {
  if (exporting_.is_busy()) return;
  exporting_.start(with_store(folder_, [runs = selected(), context = context_, file](
                                           const store::Store& store, const ReportProgress&, const std::stop_token&) {
    const plan::PlanContextPtr known = context ? context() : std::make_shared<const plan::PlanContext>();
    std::vector<report::ReportItem> items;
    for (const store::RunId& run : runs) items.push_back(report::report_item(store, run, *known));
    write_file_atomically(file, report::html_report(items, store::now_utc()));
    return file;
  }));
}

void RunsPage::export_bundle(const std::filesystem::path& file) {
  if (exporting_.is_busy()) return;
  exporting_.start(with_store(folder_, [runs = selected(), file](const store::Store& store, const ReportProgress&,
                                                                 const std::stop_token& stop) {
    importing::write_bundle(store, runs, file, importing::BundledCheckpoints::none, stop);
    return file;
  }));
}

void RunsPage::show_exported() {
  if (exporting_.problem()) emit problem(*exporting_.problem());
  if (const auto& file = exporting_.result()) show_toast(*this, tr("Saved %1").arg(qpath(file->filename())), *file);
}

void RunsPage::open_then(const QString& action) {
  const store::RunId run = current();
  RunController& runs = workspace_->runs();
  const auto shows = [&runs, run] { return runs.shown() && runs.shown()->id == run; };
  workspace_->open_run(run);
  if (shows()) return workspace_->trigger(action);
  auto* once = new QObject(this);
  connect(&runs, &RunController::shown_changed, once, [this, once, shows, action] {
    once->deleteLater();
    if (shows()) QTimer::singleShot(0, this, [this, action] { workspace_->trigger(action); });
  });
}

void RunsPage::purge_selected() {
  const auto runs = selected();
  if (runs.empty() || model_->trash() == store::Trash::kept) return;
  question_.ask(u"purge"_s,
                runs.size() == 1 ? tr("Delete %1 permanently?").arg(qs(runs.front()))
                                 : tr("Delete %n runs permanently?", nullptr, plural_count(runs.size())),
                tr("Their records, checkpoints and other files are removed. This cannot be undone."),
                {{u"keep"_s, tr("Keep"), QMessageBox::RejectRole, {}},
                 {u"delete"_s, tr("Delete Permanently"), QMessageBox::DestructiveRole, [this, runs] {
                    undo_.clear();  // its commands may refer to these runs
                    model_->purge(runs);
                  }}});
}

// Reads the run only if another one is selected or its row has changed.
void RunsPage::show_preview() {
  const store::RunId run = current();
  if (run == previewed_ && !run.empty()) return;
  previewed_ = run;
  const int row = model_->row_of(run);
  if (row < 0) return preview_->show_run({}, {});
  preview_->show_run(model_->row(row), model_->preview(row));
}

void RunsPage::fit_name() {
  QHeaderView* header = table_->horizontalHeader();
  const int others = header->length() - header->sectionSize(RunsModel::name);
  header->resizeSection(RunsModel::name, std::max(kNameWidth, table_->viewport()->width() - others));
}

// Elided numbers would be misleading. Called whenever other rows become visible.
void RunsPage::fit_numbers() {
  const QAbstractItemView& view = *table_;
  for (int c = RunsModel::train_loss; c <= RunsModel::peak; ++c)
    if (const int wanted = view.sizeHintForColumn(c); !table_->isColumnHidden(c) && wanted > table_->columnWidth(c))
      table_->setColumnWidth(c, wanted);
}

bool RunsPage::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && watched == table_->viewport()) fit_name();
  return QWidget::eventFilter(watched, event);
}

}  // namespace mw::ui

#include "moc_runs_page.cpp"
