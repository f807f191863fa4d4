// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_page.h"

#include <QButtonGroup>
#include <QClipboard>
#include <QGuiApplication>
#include <QLineEdit>
#include <QMenu>
#include <QShortcut>
#include <QWidgetAction>
#include <algorithm>

#include "core/compare/attribution.h"
#include "core/import/bundle.h"
#include "ui/session/action_registry.h"
#include "ui/session/replay_offer.h"
#include "ui/session/run_controller.h"
#include "ui/session/session.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {

constexpr size_t kMostRunsInMenu = 15;
// By ComparedKind.
constexpr const char* kKindNames[] = {QT_TRANSLATE_NOOP("mw::ui::ComparePage", "Serving (%1)"),
                                      QT_TRANSLATE_NOOP("mw::ui::ComparePage", "Training (%1)"),
                                      QT_TRANSLATE_NOOP("mw::ui::ComparePage", "Batch Sizes (%1)")};

// A run: its id. A set: its file and its name.
QString tray_key(const compare::ComparedRun& run) {
  return run.id.empty() ? qpath(std::filesystem::absolute(run.file)) + u'\n' + qs(run.name) : qs(run.id);
}

QColor color_of(compare::Fairness verdict) {
  return verdict == compare::Fairness::fair         ? theme().good
         : verdict == compare::Fairness::confounded ? theme().warn
                                                    : theme().bad;
}

}  // namespace

ComparePage::ComparePage(ComparedReader::Folders folders, plan::LoadContext context, QWidget* parent)
    : QWidget(parent),
      reader_(std::move(folders), std::move(context)),
      comparison_(std::make_shared<compare::Comparison>()) {
  build();
  connect(add_menu_, &QMenu::aboutToShow, this, &ComparePage::fill_add_menu);
  connect(tray_, &CompareTray::move_wanted, this, &ComparePage::move);
  connect(tray_, &CompareTray::remove_wanted, this, &ComparePage::remove);
  connect(tray_, &CompareTray::hovered, this, &ComparePage::emphasise);
  connect(tray_, &CompareTray::open_wanted, this,
          [this](int at) { workspace_->open_run(runs_[static_cast<size_t>(at)].id); });
  connect(tray_, &CompareTray::replay_wanted, this,
          [this](int at) { replay(runs_[static_cast<size_t>(at)], std::nullopt); });
  connect(tray_, &CompareTray::runs_dropped, this, [this](const QStringList& runs) {
    for (const QString& run : runs) add_run(ss(run));
  });
  connect(tray_, &CompareTray::files_dropped, this, [this](const QStringList& files) {
    for (const QString& file : files) add_file(fspath(file));
  });
  connect(charts_, &CompareCharts::hovered, this, &ComparePage::emphasise);
  connect(&reader_, &ComparedReader::read, this, &ComparePage::take);
  connect(&reader_, &ComparedReader::problem, this, &ComparePage::report);
  connect(&reader_, &ComparedReader::settled, this, &ComparePage::settle);
  connect(replay_, &ReplayDialog::replayed, this, [this](const QString& run) {
    const bool there = std::any_of(runs_.begin(), runs_.end(), [&](const auto& r) { return r.id == replayed_of_; });
    if (!there) add_run(replayed_of_);
    add_run(ss(run));
    workspace_->show_page(Page::compare);
  });
  connect(&effects_, &BackgroundWork::ended, this, [this] {
    if (effects_.problem()) report(*effects_.problem());
    if (!effects_.result()) return;
    comparison_ = std::make_shared<compare::Comparison>(std::move(*effects_.result()));
    model_.show(comparison_);
    show_verdict();
  });
  changed();
}

void ComparePage::attach(Workspace& workspace) {
  workspace_ = &workspace;
  register_actions(workspace);
  connect(&replay_->task(), &BackgroundWork::ended, this, [&workspace] { workspace.work_ended(); });
}

void ComparePage::register_actions(Workspace& workspace) {
  ActionRegistry& actions = workspace.actions();
  const auto compare = [this, &workspace](bool replace) {
    const auto runs = workspace.current_page().runs_to_compare();
    if (replace && !runs.empty()) clear();
    for (const store::RunId& run : runs) add_run(run);
    workspace.show_page(Page::compare);
  };
  // A single sweep is no comparison, so that the Serve page adds to the current one.
  actions.add({u"runs.compare"_s, tr("Compare the Runs"),
               tr("Compare the selected runs instead of the current ones, or add the displayed sweep"),
               QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C)},
              [&workspace, compare] { compare(workspace.page() == Page::runs); });
  actions.add({u"runs.compare_add"_s, tr("Add to Current Comparison"),
               tr("Add the selected runs or the displayed sweep to the current comparison")},
              [compare] { compare(false); });
  actions.add({u"runs.replay"_s, tr("Replay on Another Target\u2026"),
               tr("Simulate recorded requests on another target, mesh, KV type or cache policy")},
              [this, &workspace] {
                auto offer = workspace.current_page().replay_offer();
                if (!offer) offer = workspace.page_at(Page::serve).replay_offer();  // of the current sweep
                if (!offer) return workspace.show_page(Page::compare);  // its empty page explains what to do
                replay(offer->run, offer->point);
              });
  actions.add({u"compare.clear"_s, tr("Clear the Comparison"), tr("Remove all runs from the comparison")},
              [this] { clear(); });
  actions.add({u"compare.export"_s, tr("Export the Comparison…"),
               tr("Save the comparison as CSV, Markdown, LaTeX, PNG, SVG or PDF, depending on the file name")},
              [this, &workspace] {
                workspace.show_page(Page::compare);
                choose_export();
              });
}

void ComparePage::save_state(Session& session) const {
  session.set_value(u"layout/compare"_s, across_->saveState());
  session.set_value(u"compare/shown"_s, shown_chosen_ ? shown_->checkedId() : -1);
  QStringList tray = reopening_;  // not read completely yet
  for (const auto& runs : other_kinds_)
    for (const compare::ComparedRun& run : runs) tray << tray_key(run);
  for (const compare::ComparedRun& run : runs_) tray << tray_key(run);  // the shown kind last
  session.set_value(u"compare/tray"_s, tray);
}

void ComparePage::reopen(const Session& session) {
  reopening_ = session.value(u"compare/tray"_s).toStringList();
  if (reopening_.isEmpty()) return;
  QStringList wanted;  // runs, and files once
  for (const QString& key : std::as_const(reopening_)) wanted << key.section(u'\n', 0, 0);
  wanted.removeDuplicates();
  const auto is_file = [keys = reopening_](const QString& name) { return !keys.contains(name); };
  workspace_->runs().store().read(
      *this,
      [wanted, is_file](const store::Store& store) {
        QStringList gone;
        for (const QString& name : wanted)
          if (is_file(name) ? !QFileInfo::exists(name) : !store.find(ss(name))) gone << name;
        return gone;
      },
      [this, wanted, is_file](const QStringList& gone) {
        QStringList missed;
        for (const QString& name : wanted)
          if (gone.contains(name))
            missed << QFileInfo(name).fileName();
          else
            is_file(name) ? add_file(fspath(name)) : add_run(ss(name));
        if (reader_.pending() == 0) reopening_.clear();
        if (!missed.isEmpty()) show_toast(*this, tr("No longer there to compare: %1").arg(missed.join(u", "_s)));
      },
      [this](const Problem& problem) {
        reopening_.clear();
        report(problem);
      });
}

// In the order in which they were saved: a file is read as a whole.
void ComparePage::settle() {
  if (reader_.pending() == 0 && !reopening_.isEmpty()) {
    const auto place = [this](const compare::ComparedRun& run) { return reopening_.indexOf(tray_key(run)); };
    std::stable_sort(runs_.begin(), runs_.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    for (auto& runs : other_kinds_)
      std::stable_sort(runs.begin(), runs.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    reopening_.clear();
    changed();
  }
  tray_->show_runs(runs_, reader_.pending());
}

void ComparePage::restore_state(const Session& session) {
  across_->restoreState(session.value(u"layout/compare"_s).toByteArray());
  if (QAbstractButton* chosen = shown_->button(session.value(u"compare/shown"_s, -1).toInt())) chosen->click();
}

std::optional<ReplayOffer> ComparePage::replay_offer() const {
  return runs_.empty() ? std::nullopt : std::optional(ReplayOffer{runs_.front()});
}

QStringList ComparePage::unfinished_work() const {
  return replay_->task().is_busy() ? QStringList{tr("the replay")} : QStringList();
}

void ComparePage::replay(const compare::ComparedRun& run, std::optional<size_t> point) {
  try {
    compare::Recording recording = compare::recording_of(run);
    if (point) point = recording.index_of(run.sweep->set.points[*point]);
    replayed_of_ = run.id;
    replay_->open_with(std::move(recording), point);
  } catch (const Error& error) {
    report(error.problem());
  }
}

QFileInfoList ComparePage::shipped_results() const {
  return QDir(qpath(reader_.folders().results)).entryInfoList({u"*.json"_s}, QDir::Files, QDir::Name);
}

void ComparePage::add_shipped_results() {
  for (const QFileInfo& file : shipped_results()) add_file(fspath(file.filePath()));
}

void ComparePage::fill_add_menu() {
  add_menu_->clear();
  add_menu_->addSection(tr("Shipped Results"));
  const QFileInfoList files = shipped_results();
  for (const QFileInfo& file : files)
    add_menu_->addAction(file.fileName(), this, [this, path = file.filePath()] { add_file(fspath(path)); });
  if (files.isEmpty()) add_menu_->addAction(tr("None"))->setEnabled(false);
  // The examples that say what was measured of the same training.
  const QDir examples(qpath(reader_.folders().results / ".." / "examples"));
  add_menu_->addSection(tr("Shipped Plans"));
  for (const QFileInfo& file : examples.entryInfoList({u"paper-train-*.json"_s}, QDir::Files, QDir::Name))
    add_menu_->addAction(file.fileName(), this, [this, path = file.filePath()] { add_file(fspath(path)); });
  add_menu_->addSection(tr("Runs"));
  QAction* end = add_menu_->addSeparator();  // of the runs, which follow while the menu is open
  workspace_->runs().store().read(
      *end, [](const store::Store& store) { return store.list(); },
      [this, end](const std::vector<store::RunRow>& runs) { add_runs_to_menu(runs, end); },
      [this](const Problem& problem) { report(problem); });
  add_menu_->addAction(tr("Add Result or Experiment\u2026"), this, [this] {
    open_file_dialog(this,
                     {.title = tr("Add Results"),
                      .filters = tr("Results (*.json *.jsonl *.csv *.txt);;Any file (*)"),
                      .mode = QFileDialog::ExistingFiles},
                     [this](const auto& chosen) {
                       for (const auto& file : chosen) add_file(file);
                     });
  });
}

void ComparePage::add_runs_to_menu(const std::vector<store::RunRow>& runs, QAction* end) {
  const auto entry = [&](const QString& text) {
    auto* action = new QAction(text, add_menu_);
    add_menu_->insertAction(end, action);
    return action;
  };
  for (size_t i = 0; i < runs.size() && i < kMostRunsInMenu; ++i) {
    const QString name = qs(runs[i].name.empty() ? runs[i].id : runs[i].name);
    const QString shown = add_menu_->fontMetrics().elidedText(name, Qt::ElideMiddle, 320);
    connect(entry(tr("%1, %2").arg(shown, qs(runs[i].id))), &QAction::triggered, this,
            [this, id = runs[i].id] { add_run(id); });
  }
  if (runs.empty()) entry(tr("None"))->setEnabled(false);
}

void ComparePage::add_run(const store::RunId& run) {
  if (run.empty()) return;
  reader_.read_run(run);
  tray_->show_runs(runs_, reader_.pending());
}

void ComparePage::add_file(const std::filesystem::path& file) {
  if (importing::is_bundle(file)) return emit import_wanted(qpath(file));
  reader_.read_file(file);
  tray_->show_runs(runs_, reader_.pending());
}

void ComparePage::take(std::vector<compare::ComparedRun>& runs) {
  for (compare::ComparedRun& run : runs) {
    if (!run.file.empty() && !reopening_.isEmpty() && !reopening_.contains(tray_key(run))) continue;  // was removed
    show_kind(static_cast<int>(compare::kind_of(run)));
    const auto same = std::find_if(runs_.begin(), runs_.end(), [&](const compare::ComparedRun& r) {
      return r.id == run.id && (!run.id.empty() || r.name == run.name);
    });
    if (same != runs_.end())
      *same = std::move(run);
    else
      runs_.push_back(std::move(run));
  }
  changed();
}

void ComparePage::show_kind(int kind) {
  if (kind == static_cast<int>(kind_)) return;
  std::swap(runs_, other_kinds_[static_cast<size_t>(kind_)]);
  kind_ = static_cast<compare::ComparedKind>(kind);
  std::swap(runs_, other_kinds_[static_cast<size_t>(kind_)]);
}

void ComparePage::remove(int at) {
  if (at < 0 || at >= static_cast<int>(runs_.size())) return;
  runs_.erase(runs_.begin() + at);
  changed();
}

void ComparePage::move(int from, int to) {
  const int last = static_cast<int>(runs_.size()) - 1;
  if (from < 0 || from > last) return;
  to = std::clamp(to, 0, last);
  if (from == to) return;
  compare::ComparedRun run = std::move(runs_[static_cast<size_t>(from)]);
  runs_.erase(runs_.begin() + from);
  runs_.insert(runs_.begin() + to, std::move(run));
  changed();
}

void ComparePage::clear() {
  reader_.forget();
  reopening_.clear();
  runs_.clear();
  for (auto& others : other_kinds_) others.clear();
  changed();
}

void ComparePage::changed() {
  for (int kind = 0; kind < 3 && runs_.empty(); ++kind)  // a kind with runs, if there is one
    if (!other_kinds_[static_cast<size_t>(kind)].empty()) show_kind(kind);
  auto comparison = std::make_shared<compare::Comparison>();
  if (runs_.size() > 1) try {
      *comparison = compare::compare(runs_);
    } catch (const Error& error) {
      report(error.problem());
    }
  comparison_ = std::move(comparison);
  estimate_effects();
  model_.show(comparison_);
  charts_->refresh();
  tray_->show_runs(runs_, reader_.pending());
  {
    const QSignalBlocker quiet(kinds_);
    int kinds = 0;
    for (int kind = 0; kind < 3; ++kind) {
      const auto& runs = kind == static_cast<int>(kind_) ? runs_ : other_kinds_[static_cast<size_t>(kind)];
      kinds_->setTabVisible(kind, !runs.empty());
      kinds_->setTabText(kind, tr(kKindNames[kind]).arg(runs.size()));
      kinds += !runs.empty();
    }
    kinds_->setCurrentIndex(static_cast<int>(kind_));
    kinds_->setVisible(kinds > 1);
  }
  show_verdict();
  show_parts();
  emphasise(-1);
}

void ComparePage::estimate_effects() {
  if (comparison_->names.empty()) return effects_.abandon();
  effects_.start([comparison = *comparison_, input = gap_input(*comparison_, runs_), load = reader_.context()](
                     const ReportProgress&, const std::stop_token& stop) {
    return with_effects(comparison, input, *load(), stop);
  });
}

ComparePage::Shown ComparePage::shown() const {
  return static_cast<Shown>(shown_->checkedId());
}

// Until the user chooses, charts are shown if one of them has a curve.
void ComparePage::show_parts() {
  const bool alone = runs_.size() < 2;
  if (!shown_chosen_)
    shown_->button(static_cast<int>(charts_->has_curves() ? Shown::both : Shown::table))->setChecked(true);
  empty_->setVisible(runs_.empty());
  body_->setVisible(!runs_.empty());
  slo_bar_->setVisible(kind_ == compare::ComparedKind::serving);
  table_->setVisible(!alone && shown() != Shown::charts);
  alone_->setVisible(alone && shown() != Shown::charts);
  alone_->setMaximumHeight(shown() == Shown::both ? 60 : QWIDGETSIZE_MAX);
  if (charts_->isHidden() != (shown() == Shown::table)) {
    charts_->setVisible(shown() != Shown::table);
    const int half = std::max(300, across_->height() / 2);
    across_->setSizes({half, half, half});  // a splitter gives nothing to a widget that was hidden at first
  }
  fit_columns();
}

QString ComparePage::verdict() const {
  if (runs_.size() < 2) return {};
  QStringList parts{comparison_->verdict == compare::Fairness::fair
                        ? comparison_->confounders.empty() ? tr("Comparable: no known confounders")
                                                           : tr("Comparable: the confounders change less than 1 %")
                    : comparison_->verdict == compare::Fairness::confounded ? tr("Confounded")
                                                                            : tr("Not comparable")};
  for (const auto& c : comparison_->confounders) {
    const QString effects = qs(effects_text(*comparison_, c.effects));
    parts << qs(c.text) + (effects.isEmpty() ? QString() : u"; "_s + effects);
  }
  return parts.join(u"\n"_s);
}

void ComparePage::show_verdict() {
  const QStringList parts = verdict().split(u'\n');
  const qsizetype count = parts.size() - 1;
  const int marked = model_.marked_cells();
  verdict_->setText(runs_.size() < 2
                        ? QString()
                        : u"<b style='color:%1'>%2</b>"_s.arg(color_of(comparison_->verdict).name(), parts.front()));
  why_not_->setVisible(count > 0 || marked > 0);
  QString doubts = tr("%n confounder(s)", nullptr, static_cast<int>(count));
  if (marked > 0) doubts = tr("%1, %2 flagged").arg(doubts, QString::number(marked));
  why_not_->setText(doubts + u" \u203A"_s);
  QString list;
  for (qsizetype i = 0; i < count; ++i)
    list += u"<p style='margin:3px'><span style='color:%1'>\u25CF</span> %2</p>"_s.arg(
        color_of(comparison_->confounders[static_cast<size_t>(i)].at_least).name(), parts[i + 1].toHtmlEscaped());
  if (comparison_->gap && comparison_->gap->missing.empty())
    list += u"<p style='margin:3px'>%1</p>"_s.arg(
        tr("Shares are of the gap in: %1. Each is predicted for the baseline with only that difference.")
            .arg(qs(comparison_->gap->label).toHtmlEscaped()));
  if (marked > 0)
    list += u"<p style='margin:3px'>%1</p>"_s.arg(tr("The audit flags %1 cells of the table.").arg(marked));
  confounders_->setText(list);
}

void ComparePage::emphasise(int column) {
  tray_->set_emphasised(column);
  charts_->set_emphasis(column);
  model_.set_emphasis(column);
}

options::Slo ComparePage::slo() const {
  const auto value = [this](size_t i) { return std::max(0.0, slo_[i]->text().toDouble()); };
  return {.ttft_ms = value(0), .tpot_ms = value(1), .e2e_ms = value(2)};
}

// The columns share the width; they scroll beside the first one if they do not fit.
void ComparePage::fit_columns() {
  constexpr int kNarrowest = 130, kWidestKey = 330;
  const int runs = model_.columnCount() - 1;
  if (runs < 1) return;
  const QAbstractItemView& view = *table_;
  const int room = table_->viewport()->width();
  const int key = std::clamp(view.sizeHintForColumn(0) + 8, 120, std::min(kWidestKey, std::max(150, room / 3)));
  table_->setColumnWidth(0, key);
  const int width = std::max(kNarrowest, (room - key) / runs);
  for (int c = 1; c <= runs; ++c) table_->setColumnWidth(c, width);
  model_.set_title_width(width - 18);
}

bool ComparePage::eventFilter(QObject* watched, QEvent* event) {
  if (table_ && watched == table_->viewport() && event->type() == QEvent::Resize) fit_columns();
  if (table_ && watched == table_->viewport() && event->type() == QEvent::Leave) emphasise(-1);
  return QWidget::eventFilter(watched, event);
}

void ComparePage::copy_markdown() {
  QGuiApplication::clipboard()->setText(qs(to_markdown(*comparison_)));
}

void ComparePage::choose_export() {
  if (runs_.empty()) return;
  open_save_dialog(this,
                   {.title = tr("Export the Comparison"), .start = u"comparison.pdf"_s, .filters = export_filter()},
                   [this](const auto& files) { export_to(files.front()); });
}

void ComparePage::export_to(const std::filesystem::path& file) {
  try {
    export_comparison(*comparison_, runs_, slo(), file);
  } catch (const Error& error) {
    report(error.problem());
  }
}

void ComparePage::build() {
  setObjectName(u"pageBody"_s);
  auto* column = make_layout<QVBoxLayout>(this, {8, 6, 8, 6}, 5);
  kinds_ = new QTabBar(this);
  kinds_->setAccessibleName(tr("Kind of run"));
  kinds_->setDrawBase(false);
  kinds_->setExpanding(false);
  for (const char* name : kKindNames) kinds_->addTab(tr(name));
  tray_ = new CompareTray(this);
  add_menu_ = new QMenu(this);
  tray_->set_menu(add_menu_);
  column->addWidget(kinds_);
  column->addWidget(tray_);
  empty_ = empty_page(tr("Nothing to compare yet"),
                      tr("Drag runs from the Runs page, press Compare for a sweep on the Serve page, or add shipped "
                         "results and files.\nThe first run is the baseline. The page shows what differs, whether the "
                         "comparison is valid, and which numbers\nare physically impossible."),
                      {{tr("Choose Runs"), trigger(u"page.runs"_s)}}, this)
               .page;
  column->addWidget(empty_, 1);
  body_ = new QWidget(this);
  auto* rows = flush_layout<QVBoxLayout>(body_, 5);
  rows->addLayout(verdict_row());
  across_ = make_splitter(Qt::Vertical, body_);
  build_table();
  charts_ = new CompareCharts(runs_, reader_.context(), across_);
  across_->addWidget(charts_);
  set_shares(*across_, {300, 300, 300}, {1, 1, 1});  // table or note, charts
  across_->setChildrenCollapsible(false);
  rows->addWidget(across_, 1);
  column->addWidget(body_, 1);
  replay_ = new ReplayDialog(reader_.folders().runs, reader_.context(), this);
  connect(kinds_, &QTabBar::currentChanged, this, [this](int kind) {
    show_kind(kind);
    changed();
  });
}

// Verdict, what is shown, SLO limits, copy and export.
QLayout* ComparePage::verdict_row() {
  auto* row = flush_layout<QHBoxLayout>(nullptr, 5);
  verdict_ = new QLabel(this);
  verdict_->setTextFormat(Qt::RichText);
  verdict_->setAccessibleName(tr("Validity of the comparison"));
  row->addWidget(verdict_);
  why_not_ = new QToolButton(this);
  why_not_->setObjectName(u"confounders"_s);
  why_not_->setProperty("chip", true);
  why_not_->setPopupMode(QToolButton::InstantPopup);
  why_not_->setStyleSheet(u"QToolButton::menu-indicator { image: none; }"_s);
  why_not_->setToolTip(tr("List what makes the numbers hard to compare"));
  auto* menu = new QMenu(why_not_);
  confounders_ = new QLabel(menu);
  confounders_->setWordWrap(true);
  confounders_->setMinimumWidth(560);
  confounders_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* list = new QWidgetAction(menu);
  list->setDefaultWidget(confounders_);
  menu->addAction(list);
  why_not_->setMenu(menu);
  row->addWidget(why_not_);
  row->addStretch(1);
  add_shown_buttons(*row);
  add_slo_fields(*row);
  QPushButton* copy = add_button(*row, {}, tr("Copy the comparison as Markdown"), Glyph::copy);
  copy->setAccessibleName(tr("Copy"));
  QPushButton* save =
      add_button(*row, tr("Export\u2026"),
                 tr("Save the comparison as CSV, Markdown, LaTeX, PNG, SVG or PDF, depending on the file name"));
  connect(copy, &QPushButton::clicked, this, &ComparePage::copy_markdown);
  connect(save, &QPushButton::clicked, this, &ComparePage::choose_export);
  return row;
}

void ComparePage::add_shown_buttons(QHBoxLayout& row) {
  differing_ = chip_button(tr("Differing"),
                           tr("Hide settings that are equal in all runs, and results that only one run has"), this);
  differing_->setChecked(true);
  row.addWidget(differing_);
  connect(differing_, &QToolButton::toggled, this, [this](bool on) {
    model_.set_shown(on ? RowsShown::differing : RowsShown::all);
    fit_columns();
  });
  shown_ = new QButtonGroup(this);
  for (const auto& [text, tip] :
       {std::pair{tr("Table"), tr("Show the table alone")}, std::pair{tr("Charts"), tr("Show the charts alone")},
        std::pair{tr("Both"), tr("Show the table above the charts")}}) {
    QToolButton* button = chip_button(text, tip, this);
    shown_->addButton(button, static_cast<int>(shown_->buttons().size()));
    row.addWidget(button);
  }
  shown_->button(static_cast<int>(Shown::both))->setChecked(true);
  connect(shown_, &QButtonGroup::idClicked, this, [this] {
    shown_chosen_ = true;
    show_parts();
  });
}

void ComparePage::build_table() {
  table_ = make_table(model_, tr("Differences"), across_);
  table_->setMouseTracking(true);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->viewport()->installEventFilter(this);
  freeze_columns(*table_);
  across_->addWidget(table_);
  alone_ = muted_label(tr("Add a second run to see the differences here."), across_);
  alone_->setAlignment(Qt::AlignCenter);
  across_->addWidget(alone_);
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& at) { emphasise(at.column() - 1); });
  auto* copy = new QShortcut(QKeySequence::Copy, table_);
  copy->setContext(Qt::WidgetShortcut);
  connect(copy, &QShortcut::activated, this, &ComparePage::copy_markdown);
}

void ComparePage::add_slo_fields(QHBoxLayout& row) {
  slo_bar_ = new QWidget(this);
  auto* bar = flush_layout<QHBoxLayout>(slo_bar_, 5);
  bar->addWidget(muted_label(tr("SLO"), this));
  const QString names[] = {tr("TTFT"), tr("TPOT"), tr("E2E")};
  for (size_t i = 0; i < std::size(names); ++i) {
    auto* field = slo_[i] = new QLineEdit(this);
    field->setPlaceholderText(tr("%1 ms").arg(names[i]));
    field->setAccessibleName(tr("SLO of %1 in ms").arg(names[i]));
    field->setToolTip(tr("Limit of the median %1 in ms; cells above it are highlighted").arg(names[i]));
    constexpr int kAround = 14;  // edge and padding
    field->setFixedWidth(field->fontMetrics().horizontalAdvance(field->placeholderText()) + kAround);
    auto* number = new QDoubleValidator(0, 1e9, 6, field);
    number->setLocale(QLocale::c());
    field->setValidator(number);
    bar->addWidget(field);
    connect(field, &QLineEdit::textChanged, this, [this] {
      model_.set_slo(slo());
      charts_->set_slo(slo());
    });
  }
  row.addWidget(slo_bar_);
}

}  // namespace mw::ui

#include "moc_compare_page.cpp"
