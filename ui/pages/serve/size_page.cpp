// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/size_page.h"

#include <QCheckBox>
#include <algorithm>

#include "core/experiment/parameters.h"
#include "ui/form/form_field.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

BesideBox::BesideBox(RunController& runs, QWidget* parent) : QComboBox(parent), runs_(runs) {
  setSizeAdjustPolicy(QComboBox::AdjustToContents);
  setMaximumWidth(220);
  setToolTip(tr("Another size run whose lines are drawn in the same charts"));
  connect(this, &QComboBox::currentIndexChanged, this, &BesideBox::read);
  connect(&reading_, &BackgroundWork::ended, this, [this] {
    if (reading_.problem()) emit problem(*reading_.problem());
    if (!reading_.result()) return;
    view_ = std::make_shared<const views::SizeView>(views::size_view((*reading_.result())->view));
    emit view_changed();
  });
  offer({});
}

void BesideBox::offer(const store::RunId& shown) {
  shown_ = shown;
  if (!runs_.store().exists()) return show_runs({});
  runs_.store().read(
      *this, [](const store::Store& store) { return store.list(); },
      [this](const std::vector<store::RunRow>& runs) { show_runs(runs); },
      [this](const Problem& found) { emit problem(found); });
}

void BesideBox::show_runs(const std::vector<store::RunRow>& runs) {
  const QString before = currentData().toString();
  const QSignalBlocker quiet(this);
  clear();
  addItem(tr("none"));
  for (const store::RunRow& row : runs)
    if (kind_of(row) == RunKind::size && row.id != shown_ && row.steps_done > 0)
      addItem(tr("%1: %2").arg(qs(row.id), qs(row.name)), qs(row.id));
  setCurrentIndex(std::max(0, before.isEmpty() ? 0 : findData(before)));
  read();
  if (std::exchange(opens_, false)) QComboBox::showPopup();
}

void BesideBox::choose(const store::RunId& run) {
  setCurrentIndex(std::max(0, findData(qs(run))));
}

void BesideBox::read() {
  const store::RunId chosen = ss(currentData().toString());
  if (chosen == read_) return;
  read_ = chosen;
  view_.reset();
  reading_.abandon();
  if (!chosen.empty())
    reading_.start([folder = runs_.runs_folder(), chosen](const ReportProgress&, const std::stop_token& stop) {
      return load_run(folder, chosen, stop);
    });
  emit view_changed();
}

void BesideBox::showPopup() {
  opens_ = true;  // with the runs that there are then
  offer(shown_);
}

namespace {

constexpr options::Workload kWorkloads[] = {options::Workload::rollout, options::Workload::forward,
                                            options::Workload::chunked_forward};

// Settings outside of the Sizing group that affect a sizing.
bool shapes_a_sizing(const experiment::Parameter& p) {
  return p.group == "Sizing" || p.key == "train.dtype" || p.key == "target.memory_gib";
}

}  // namespace

SizePage::SizePage(RunController& runs, QWidget* parent) : RunTab(runs, RunKind::size, parent) {
  link_.set_x(tr("batch"), AxisQuantity::count);
  column_->setSpacing(3);
  build({.empty_title = tr("No sizing yet"),
         .empty_text =
             tr("Measure runs the model of the experiment on this machine with several batch sizes and shows\n"
                "time, time per token and memory for generation, for scoring with all logits at once and for\n"
                "scoring in chunks. Batches that are predicted not to fit are not run. For another target, Predict\n"
                "computes the same from the plan. Set batches and lengths in the Sizing group of the form."),
         .show_settings = tr("Show Sizing Settings"),
         .settings_tip = tr("Show the sizing settings in the form"),
         .copy_tip = tr("Copy all rows as CSV with full precision, in seconds and bytes"),
         .start = tr("Measure"),
         .start_tip = tr("Measure the experiment in the form as a new run (Ctrl+F5)"),
         .stop_tip = tr("Stop after the current token and keep the finished points (Shift+F5)"),
         .setting = "size.batches",
         .action = u"run.size"_s});
  label_->setProperty("muted", true);
  build_choices();
  build_charts();
  connect(&link_, &ChartLink::cursor_changed, this, [this] {
    // The rows of the pinned batch.
    const auto head = link_.playhead();
    table_->clearSelection();
    for (int row = 0; head && row < model_.rowCount(); ++row)
      if (QString::number(model_.row(row).batch) == link_.x_text(*head))
        table_->selectionModel()->select(model_.index(row, 0), QItemSelectionModel::Select | QItemSelectionModel::Rows);
  });
  adopt();
}

void SizePage::build_choices() {
  adapters_ = new QCheckBox(tr("Memory with LoRA"));
  adapters_->setToolTip(tr("Show the memory with LoRA adapters in the charts of memory"));
  adapters_->hide();
  beside_ = new BesideBox(runs_);
  auto* label = muted_label(tr("Beside"), this);
  label->setBuddy(beside_);
  beside_->setAccessibleName(tr("Size run drawn beside this one"));
  bar_->insertWidget(1, adapters_);
  bar_->insertWidget(2, label);
  bar_->insertWidget(3, beside_);
  connect(adapters_, &QCheckBox::toggled, this, &SizePage::redraw);
  connect(beside_, &BesideBox::view_changed, this, &SizePage::redraw);
  connect(beside_, &BesideBox::problem, this,
          [this](const Problem& p) { workspace_->report(ProblemSource::store, p); });
  connect(&runs_, &RunController::ended, this, [this] { beside_->offer(run_ ? run_->id : store::RunId()); });
}

void SizePage::build_charts() {
  rows_ = make_splitter(Qt::Vertical);
  const QString waiting = tr("Points appear when they are measured"), unit = tr("by batch size");
  auto* times = make_splitter(Qt::Horizontal, rows_);
  total_ = new Chart({.title = tr("Total time"), .unit = unit, .quantity = AxisQuantity::seconds, .empty = waiting},
                     link_, times);
  per_token_ = new Chart(
      {.title = tr("Time per token"), .unit = unit, .quantity = AxisQuantity::seconds, .empty = waiting}, link_, times);
  for (Chart* p : {total_, per_token_}) p->set_scale(Scale::logarithmic);
  auto* memory = make_splitter(Qt::Horizontal, rows_);
  for (const options::Workload w : kWorkloads)
    memory_[w] = new Chart({.title = tr("%1 memory").arg(short_text(w)),
                            .quantity = AxisQuantity::bytes,
                            .empty = waiting,
                            .from_zero = true},
                           link_, memory);
  for (Chart* chart : rows_->findChildren<Chart*>()) chart->setMinimumHeight(kChartHeight);
  build_table();
  rows_->addWidget(table_);
  set_shares(*rows_, {190, 220, 160}, {4, 5, 3});
  content_->addWidget(rows_, 1);
}

void SizePage::build_table() {
  table_ = make_table(model_, tr("Measured batch sizes"));
  table_->horizontalHeader()->moveSection(SizesModel::result, SizesModel::columns - 1);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->viewport()->installEventFilter(this);
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& at) {
    for (const Tick& stop : link_.stops())
      if (stop.label == QString::number(model_.row(at.row()).batch)) link_.set_playhead(stop.value);
  });
  copy_on_ctrl_c(*table_);
}

void SizePage::restyle() {
  view_.reset();
  changed_ = true;
  show_frame();
}

void SizePage::reset() {
  view_.reset();
  beside_->offer(run_ ? run_->id : store::RunId());
}

void SizePage::show_start() {
  const bool predicts = experiment::relevance(workspace_->document().experiment(), experiment::Kind::size).planned;
  start_->setText(predicts ? tr("Predict") : tr("Measure"));
  start_->setToolTip(predicts ? tr("Predict the experiment in the form for its target as a new run (Ctrl+F5)")
                              : tr("Measure the experiment in the form as a new run (Ctrl+F5)"));
}

void SizePage::show_frame() {
  if (!isVisible()) return;
  show_start();
  if (!show_changes()) return;
  const bool started = run_ && !run_->view.info().empty();
  if (!view_ || points_seen_ != (run_ ? run_->view.points().size() : 0) || started_ != started) {
    started_ = started;
    redraw();
  }
}

void SizePage::redraw() {
  points_seen_ = run_ ? run_->view.points().size() : 0;
  view_ = std::make_shared<views::SizeView>(run_ ? views::size_view(run_->view) : views::SizeView{});
  const SizeViewPtr& other = beside_->view();
  std::vector<int> batches = view_->batches;
  if (other) batches.insert(batches.end(), other->batches.begin(), other->batches.end());
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  const BatchAxis axis = batch_axis(batches);
  link_.set_stops(axis.stops);
  link_.set_data(axis.range);
  const Notes time = time_notes(*view_);
  for (const auto& [chart, quantity] :
       {std::pair{total_, SizeTime::total}, std::pair{per_token_, SizeTime::per_token}}) {
    std::vector<ChartLine> lines = size_lines(*view_, quantity);
    if (other)
      for (ChartLine& line : size_lines(*other, quantity, beside_->currentData().toString() + u' '))
        lines.push_back(std::move(line));
    chart->set_lines(std::move(lines));
  }
  adapters_->setVisible(view_->has_both());
  for (Chart* p : {total_, per_token_}) p->set_notes(time.marks, time.caption);
  for (auto& [workload, chart] : memory_) {
    const auto* with = view_->find(workload, true);
    const auto* without = view_->find(workload, false);
    const auto* line = with && (adapters_->isChecked() || !without) ? with : without;
    const Notes notes = memory_notes(*view_, line);
    chart->set_stack(size_stack(view_, line));
    chart->set_levels(size_levels(*view_));
    chart->set_notes(notes.marks, notes.caption);
    chart->setVisible(view_->lines.empty() || line);
  }
  model_.show(view_);
  fit_columns();
  label_->setText(settings_text());
}

// Shows memory by category only if all columns fit, because the charts above show it too.
void SizePage::fit_columns() {
  constexpr int kResult = 150;  // the tooltip has the full text
  const QAbstractItemView& view = *table_;
  int sum = kResult;
  for (int c = 0; c < SizesModel::columns; ++c) {
    if (!model_.is_column_used(c)) continue;
    int& width = column_widths_[static_cast<size_t>(c)];
    const int wanted = std::max(view.sizeHintForColumn(c), table_->horizontalHeader()->sectionSizeHint(c)) + 6;
    width = points_seen_ <= 1 ? wanted : std::max(width, wanted);
    if (c != SizesModel::result) sum += width;
  }
  const bool all = sum <= table_->viewport()->width();
  for (int c = 0; c < SizesModel::columns; ++c) {
    table_->setColumnHidden(c, !model_.is_column_used(c) || (c >= SizesModel::categories && !all));
    if (c != SizesModel::result) table_->setColumnWidth(c, column_widths_[static_cast<size_t>(c)]);
  }
}

// The settings at the start of the run, with the labels of the parameter table.
QString SizePage::settings_text() const {
  QStringList parts, others;
  if (!run_) return {};
  if (view_ && view_->is_predicted) parts << tr("predicted for %1").arg(qs(view_->target));
  for (const experiment::Parameter& p : experiment::parameters()) {
    if (!shapes_a_sizing(p) || p.key == "size.workloads" || p.key == "size.batches") continue;  // shown by the charts
    const Json* set = raw_value(run_->record, p.key);
    if (!set && p.key == "target.memory_gib") continue;
    const Json& json = set ? *set : p.fallback;
    const QString value = json.is_boolean() ? (json.get<bool>() ? tr("on") : tr("off")) : field_text(json);
    const bool of_sizing = p.group == "Sizing";
    (of_sizing ? parts : others) << (p.unit.empty() ? tr("%1 %2").arg(qs(p.label), value)
                                                    : tr("%1 %2 %3").arg(qs(p.label), value, qs(p.unit)));
  }
  return (parts + others).join(u"  \u00B7  "_s);
}

bool SizePage::eventFilter(QObject* watched, QEvent* event) {
  if (table_ && watched == table_->viewport() && event->type() == QEvent::Resize) fit_columns();
  return QWidget::eventFilter(watched, event);
}

}  // namespace mw::ui

#include "moc_size_page.cpp"
