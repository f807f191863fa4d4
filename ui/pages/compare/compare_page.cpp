// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_page.h"

#include <QClipboard>
#include <QDir>
#include <QDoubleValidator>
#include <QEvent>
#include <QFileDialog>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/comparison_export.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr size_t kMostRunsInMenu = 15;

QColor color_of(compare::Fairness verdict) {
  return verdict == compare::Fairness::fair         ? theme().good
         : verdict == compare::Fairness::confounded ? theme().warn
                                                    : theme().bad;
}

}  // namespace

ComparePage::ComparePage(ComparedReader::Folders folders, QWidget* parent)
    : QWidget(parent), reader_(std::move(folders)), comparison_(std::make_shared<compare::Comparison>()) {
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
  connect(&reader_, &ComparedReader::settled, this, [this] { tray_->show_runs(runs_, reader_.pending()); });
  connect(replay_, &ReplayDialog::replayed, this, [this](const QString& run) {
    const bool there = std::any_of(runs_.begin(), runs_.end(), [&](const auto& r) { return r.id == replayed_of_; });
    if (!there) add_run(replayed_of_);
    add_run(ss(run));
    workspace_->show_page(Page::compare);
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
  actions.add(
      {u"runs.compare"_s, tr("Compare the Runs"), tr("Add the selected runs or the displayed sweep to the comparison"),
       QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C)},
      [this, &workspace] {
        for (const store::RunId& run : workspace.current_page().runs_to_compare()) add_run(run);
        workspace.show_page(Page::compare);
      });
  actions.add({u"runs.replay"_s, tr("Replay on Another Target\u2026"),
               tr("Simulate recorded requests on another target, mesh, KV type or cache policy")},
              [this, &workspace] {
                auto offer = workspace.current_page().replay_offer();
                if (!offer) offer = workspace.replay_offer();
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
}

void ComparePage::restore_state(const Session& session) {
  across_->restoreState(session.value(u"layout/compare"_s).toByteArray());
}

std::optional<ReplayOffer> ComparePage::replay_offer() const {
  return runs_.empty() ? std::nullopt : std::optional(ReplayOffer{runs_.front()});
}

QStringList ComparePage::unfinished_work() const {
  return replay_->task().is_busy() ? QStringList{tr("the replay")} : QStringList();
}

hardware::LoadCatalogue ComparePage::catalogue() const {
  return [f = reader_.folders()] { return hardware::Catalogue::load(f.hardware, f.own_hardware); };
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

void ComparePage::fill_add_menu() {
  add_menu_->clear();
  add_menu_->addSection(tr("Shipped Results"));
  const QDir shipped(qpath(reader_.folders().results));
  const QStringList files = shipped.entryList({u"*.json"_s}, QDir::Files, QDir::Name);
  for (const QString& file : files)
    add_menu_->addAction(file, this, [this, path = shipped.filePath(file)] { add_file(fspath(path)); });
  if (files.isEmpty()) add_menu_->addAction(tr("None"))->setEnabled(false);
  add_menu_->addSection(tr("Runs"));
  try {
    const auto rows = store::Store(reader_.folders().runs).list();
    for (size_t i = 0; i < rows.size() && i < kMostRunsInMenu; ++i) {
      const QString name = qs(rows[i].name.empty() ? rows[i].id : rows[i].name);
      add_menu_->addAction(
          tr("%1, %2").arg(add_menu_->fontMetrics().elidedText(name, Qt::ElideMiddle, 320), qs(rows[i].id)), this,
          [this, id = rows[i].id] { add_run(id); });
    }
    if (rows.empty()) add_menu_->addAction(tr("None"))->setEnabled(false);
  } catch (const Error& error) {
    report(error.problem());
  }
  add_menu_->addSeparator();
  add_menu_->addAction(tr("Add Result File\u2026"), this, [this] {
    open_file_dialog(this,
                     {.title = tr("Add Results"),
                      .filters = tr("Results (*.json *.jsonl *.csv *.txt);;Any file (*)"),
                      .mode = QFileDialog::ExistingFiles},
                     [this](const auto& chosen) {
                       for (const auto& file : chosen) add_file(file);
                     });
  });
}

void ComparePage::add_run(const store::RunId& run) {
  if (run.empty()) return;
  reader_.read_run(run);
  tray_->show_runs(runs_, reader_.pending());
}

void ComparePage::add_file(const std::filesystem::path& file) {
  reader_.read_file(file);
  tray_->show_runs(runs_, reader_.pending());
}

void ComparePage::take(std::vector<compare::ComparedRun>& runs) {
  for (compare::ComparedRun& run : runs) {
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
  runs_.clear();
  changed();
}

void ComparePage::changed() {
  auto comparison = std::make_shared<compare::Comparison>();
  if (runs_.size() > 1) try {
      *comparison = compare::compare(runs_);
    } catch (const Error& error) {
      report(error.problem());
    }
  comparison_ = std::move(comparison);
  model_.show(comparison_);
  charts_->refresh();
  tray_->show_runs(runs_, reader_.pending());
  empty_->setVisible(runs_.empty());
  across_->setVisible(!runs_.empty());
  alone_->setVisible(runs_.size() == 1);
  table_->setVisible(runs_.size() > 1);
  show_verdict();
  fit_columns();
  emphasise(-1);
}

void ComparePage::restyle() {
  charts_->refresh();
  tray_->show_runs(runs_, reader_.pending());
  show_verdict();
}

QString ComparePage::verdict() const {
  if (runs_.size() < 2) return {};
  QStringList parts{qs(to_string(comparison_->verdict))};
  for (const auto& c : comparison_->confounders) parts << qs(c.text);
  return parts.join(u"\n"_s);
}

void ComparePage::show_verdict() {
  verdict_area_->setVisible(runs_.size() > 1);
  const auto& c = *comparison_;
  QString word = qs(to_string(c.verdict));
  if (!word.isEmpty()) word[0] = word[0].toUpper();
  QStringList why;
  const QStringList names = short_names(runs_);  // as in the tray
  for (const auto& confounder : c.confounders) {
    QString text = qs(confounder.text);
    for (qsizetype i = 0; i < names.size(); ++i) text.replace(qs(runs_[static_cast<size_t>(i)].name), names[i]);
    why << u"<span style='color:%1'>\u25CF</span>&nbsp;%2"_s.arg(color_of(confounder.at_least).name(),
                                                                 text.toHtmlEscaped());
  }
  QString text = u"<b style='color:%1'>%2</b>"_s.arg(color_of(c.verdict).name(), word);
  text += why.isEmpty() ? tr(": no known difference affects these numbers") : u"  "_s + why.join(u"  "_s);
  if (const int marked = model_.marked_cells(); marked > 0)
    text += tr("  <b style='color:%1'>the audit flags %2 cells</b>").arg(theme().bad.name()).arg(marked);
  verdict_->setText(text);
  verdict_->setToolTip(u"<p>"_s + verdict().toHtmlEscaped().replace(u"\n"_s, u"<br>"_s) + u"</p>"_s);
  const int lines = verdict_->heightForWidth(std::max(200, verdict_area_->width() - 14));
  verdict_area_->setFixedHeight(std::clamp(lines + 4, 20, 76));
}

void ComparePage::emphasise(int column) {
  tray_->set_emphasised(column);
  charts_->set_emphasis(column);
  model_.set_emphasis(column);
}

serve::Slo ComparePage::slo() const {
  const auto value = [this](size_t i) { return std::max(0.0, slo_[i]->text().toDouble()); };
  return {.ttft_ms = value(0), .tpot_ms = value(1), .e2e_ms = value(2)};
}

void ComparePage::fit_columns() {
  if (model_.columnCount() < 2) return;
  const QAbstractItemView& view = *table_;
  const int room = table_->viewport()->width();
  const auto needed = [&](int c) { return std::max(96, std::min(220, view.sizeHintForColumn(c) + 8)); };
  int most = room * 2 / 5;  // labels get the width that columns do not need
  if (model_.columnCount() == 3) most = room - needed(1) - needed(2);
  const int key = std::clamp(view.sizeHintForColumn(0) + 8, 120, std::max(150, most));
  table_->setColumnWidth(0, key);
  int left = room - key;
  for (int c = 1; c < model_.columnCount(); ++c) left -= needed(c);
  const int more = std::max(0, left) / (model_.columnCount() - 1);
  for (int c = 1; c < model_.columnCount(); ++c) table_->setColumnWidth(c, needed(c) + more);
}

bool ComparePage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == verdict_area_ && event->type() == QEvent::Resize) show_verdict();
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
  tray_ = new CompareTray(this);
  add_menu_ = new QMenu(this);
  tray_->set_menu(add_menu_);
  column->addWidget(tray_);
  column->addWidget(verdict_line());
  empty_ = empty_page(tr("Nothing to compare yet"),
                      tr("Drag runs from the Runs page, press Compare for a sweep on the Serve page, or add shipped "
                         "results and files.\nThe first run is the baseline. The page shows what differs, whether the "
                         "comparison is valid, and which numbers\nare physically impossible."),
                      {{tr("Choose Runs"), trigger(u"page.runs"_s)}}, this)
               .page;
  column->addWidget(empty_, 1);
  across_ = make_splitter(Qt::Horizontal, this);
  across_->addWidget(table_side());
  charts_ = new CompareCharts(runs_, catalogue(), across_);
  across_->addWidget(charts_);
  set_shares(*across_, {440, 520}, {4, 5});
  across_->setChildrenCollapsible(false);
  // Charts and chips scroll or elide, so that long names never make the window wider than the screen. The side of the
  // table is as wide as its row of buttons.
  constexpr int kNarrowest = 300;
  charts_->setMinimumWidth(kNarrowest);
  tray_->setMinimumWidth(kNarrowest);
  column->addWidget(across_, 1);
  replay_ = new ReplayDialog(reader_.folders().runs, catalogue(), this);
}

QWidget* ComparePage::verdict_line() {
  verdict_area_ = new QScrollArea(this);
  verdict_area_->setWidgetResizable(true);
  verdict_area_->setFrameShape(QFrame::NoFrame);
  verdict_area_->setFocusPolicy(Qt::NoFocus);
  verdict_ = new QLabel;
  verdict_->setWordWrap(true);
  verdict_->setTextFormat(Qt::RichText);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  verdict_->setContentsMargins(4, 0, 4, 0);
  verdict_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  verdict_->setAccessibleName(tr("Validity of the comparison"));
  verdict_area_->setWidget(verdict_);
  verdict_area_->installEventFilter(this);
  return verdict_area_;
}

QWidget* ComparePage::table_side() {
  auto* side = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(side, 4);
  column->addLayout(table_controls());
  table_ = make_table(model_, tr("Differences"), side);
  table_->setMouseTracking(true);
  table_->viewport()->installEventFilter(this);
  column->addWidget(table_, 1);
  alone_ = muted_label(tr("Add a second run to see the differences here."), side);
  alone_->setWordWrap(true);
  alone_->setAlignment(Qt::AlignCenter);
  column->addWidget(alone_, 1);
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& at) { emphasise(at.column() - 1); });
  auto* copy = new QShortcut(QKeySequence::Copy, table_);
  copy->setContext(Qt::WidgetShortcut);
  connect(copy, &QShortcut::activated, this, &ComparePage::copy_markdown);
  return side;
}

// Above the table: filter, SLO limits, copy and export.
QLayout* ComparePage::table_controls() {
  auto* row = new QHBoxLayout;
  row->setSpacing(5);
  QToolButton* differing =
      chip_button(tr("Show Only Differences"), tr("Hide settings that are equal in all runs"), this);
  differing->setChecked(true);
  row->addWidget(differing);
  add_slo_fields(*row);
  row->addStretch(1);
  QPushButton* copy = add_button(*row, {}, tr("Copy the comparison as Markdown"), Glyph::copy);
  copy->setAccessibleName(tr("Copy"));
  QPushButton* save =
      add_button(*row, tr("Export\u2026"),
                 tr("Save the comparison as CSV, Markdown, LaTeX, PNG, SVG or PDF, depending on the file name"));
  connect(differing, &QToolButton::toggled, this, [this](bool on) {
    model_.set_shown(on ? RowsShown::differing : RowsShown::all);
    fit_columns();
  });
  connect(copy, &QPushButton::clicked, this, &ComparePage::copy_markdown);
  connect(save, &QPushButton::clicked, this, &ComparePage::choose_export);
  return row;
}

void ComparePage::add_slo_fields(QHBoxLayout& row) {
  row.addWidget(muted_label(tr("SLO, ms"), this));
  const QString names[] = {tr("TTFT"), tr("TPOT"), tr("E2E")};
  for (size_t i = 0; i < std::size(names); ++i) {
    auto* field = slo_[i] = new QLineEdit(this);
    field->setPlaceholderText(names[i]);
    field->setAccessibleName(tr("SLO of %1, ms").arg(names[i]));
    field->setToolTip(tr("Limit of the median %1 in ms; cells above it are highlighted").arg(names[i]));
    field->setMinimumWidth(50);
    field->setMaximumWidth(70);
    auto* number = new QDoubleValidator(0, 1e9, 6, field);
    number->setLocale(QLocale::c());
    field->setValidator(number);
    row.addWidget(field);
    connect(field, &QLineEdit::textChanged, this, [this] {
      model_.set_slo(slo());
      charts_->set_slo(slo());
    });
  }
}

}  // namespace mw::ui
