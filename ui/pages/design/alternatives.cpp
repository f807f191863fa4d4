// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/alternatives.h"

#include <QComboBox>
#include <QProgressBar>
#include <QStackedWidget>

#include "core/experiment/bound_experiment.h"
#include "ui/charts/chart_types.h"

namespace mw::ui {

using plan::Candidate;

namespace {

constexpr int kMostDevices = 64;  // of the other targets that are searched too
// Best first; nobody reads thousands of rows, and screen readers walk through all of them.
constexpr size_t kListed = 100;

// All targets except this machine, up to a size that can be rented by the hour.
std::vector<std::string> other_targets(const plan::PlanContext& context) {
  std::vector<std::string> out;
  for (const std::string& id : context.catalogue.target_ids())
    if (const hardware::Target t = context.catalogue.target(id);
        t.chip.vendor != hardware::Vendor::cpu && t.devices() <= kMostDevices)
      out.push_back(id);
  return out;
}

}  // namespace

CandidatesModel::CandidatesModel()
    : TableModel(
          {{.title = tr("\u25CF"),
            .tooltip = tr(
                "On the Pareto front: no other plan is better in time, cost or memory without being worse in another"),
            .alignment = Qt::AlignHCenter,
            .text = [](const Candidate& c) { return c.pareto ? u"\u25CF"_s : QString(); },
            .sort_key = [](const Candidate& c) { return c.pareto ? 0 : 1; }},
           {.title = tr("Target"), .text = [](const Candidate& c) { return qs(c.choice.target); }},
           {.title = tr("Mesh"), .text = [](const Candidate& c) { return qs(mesh::to_text(c.choice.mesh)); }},
           number(
               tr("Request"), [](const auto& c) { return c.sweep ? shown(Seconds(c.sweep->seconds)) : QString(); },
               [](const auto& c) { return c.sweep ? c.sweep->seconds : c.seconds; }),
           number_of(tr("Step"), &Candidate::seconds, [](double value) { return shown(Seconds(value)); }),
           number_of(tr("Cost"), &Candidate::usd, [](double value) { return shown(Usd(value)); }),
           number_of(tr("Memory"), &Candidate::peak, shown<Bytes>),
           {.title = tr("Settings"),
            .tooltip = tr("Batch and accumulation, remat policy, rows of logits at once: those that differ"),
            .text =
                [this](const Candidate& c) {
                  QStringList differing;
                  for (const size_t i : differing_) differing << all_settings(c)[i].second;
                  return differing.join(u", "_s);
                }}},
          [this](const Candidate& c, int column, int role) { return cell(c, column, role); }) {}

// Names and values of the settings that a search varies besides target and mesh.
CandidatesModel::Settings CandidatesModel::all_settings(const Candidate& c) const {
  if (work_ == plan::Work::serve)
    return {{tr("sequences"), QString::number(c.choice.max_num_seqs)},
            {tr("KV cache"), qs(to_string(c.choice.kv))},
            {tr("replicas"), QString::number(c.choice.replicas)}};
  Settings out{{tr("batch"), tr("%1 \u00D7 %2").arg(c.choice.batch).arg(c.choice.accumulation)}};
  if (work_ != plan::Work::train) return out;
  out.emplace_back(tr("remat"), qs(to_string(c.choice.remat)));
  out.emplace_back(tr("logits"), c.choice.loss_chunk > 0 ? tr("by %1").arg(c.choice.loss_chunk) : tr("full"));
  out.emplace_back(tr("rows"), c.choice.rows == plan::RowLayout::packed ? tr("packed") : tr("not packed"));
  out.emplace_back(tr("attention"), qs(to_string(c.choice.attention)));
  out.emplace_back(tr("adapters"), qs(to_string(c.choice.adapters)));
  out.emplace_back(tr("moments"), qs(to_string(c.choice.moments)));
  out.emplace_back(tr("software"), qs(to_string(c.choice.stack)));
  return out;
}

void CandidatesModel::show(const std::shared_ptr<const plan::ExperimentSearch>& found) {
  work_ = found ? found->request.work : plan::Work::train;
  std::vector<Candidate> rows = found ? found->result.candidates : std::vector<Candidate>();
  if (rows.size() > kListed) rows.erase(rows.begin() + kListed, rows.end());
  differing_.clear();
  QStringList shared;
  const Settings first = rows.empty() ? Settings() : all_settings(rows.front());
  for (size_t i = 0; i < first.size(); ++i) {
    const auto differs = [&](const Candidate& c) { return all_settings(c)[i] != first[i]; };
    if (std::any_of(rows.begin(), rows.end(), differs))
      differing_.push_back(i);
    else
      shared << QString(first[i].first + u' ' + first[i].second);
  }
  shared_ = shared.join(u", "_s);
  set_rows(std::move(rows));
}

bool CandidatesModel::is_column_used(int column) const {
  if (rows_.empty()) return column != target;
  const auto differs = [this](auto different) { return std::any_of(rows_.begin(), rows_.end(), different); };
  if (column == request) return differs([](const Candidate& c) { return c.sweep.has_value(); });
  if (column == usd) return differs([](const Candidate& c) { return c.usd > 0; });
  if (column == settings) return !differing_.empty();
  return column != target ||
         differs([this](const Candidate& c) { return c.choice.target != rows_.front().choice.target; });
}

QVariant CandidatesModel::cell(const Candidate& c, int column, int role) const {
  if (role == Qt::ForegroundRole && column == pareto) return theme().accent;
  if (role != Qt::ToolTipRole) return {};
  QStringList lines{qs(plan::to_text(c.choice, work_)),
                    tr("predicted: %1 per step, %2 tokens/s, %3 of %4")
                        .arg(qs(to_text(Seconds(c.seconds))), qs(count_text(c.tokens_per_second)), qs(to_text(c.peak)),
                             qs(to_text(c.capacity)))};
  if (c.sweep)
    lines << tr("simulated sweep: %1 per request on average, %2 per million output tokens")
                 .arg(qs(to_text(Seconds(c.sweep->seconds))), qs(to_text(Usd(c.sweep->usd))));
  if (c.pareto) lines << tr("on the Pareto front of time, cost and memory");
  lines << tr("Enter or double-click applies it");
  return lines.join(u'\n');
}

Alternatives::Alternatives(Document& document, plan::LoadContext context, QWidget* parent)
    : QWidget(parent), document_(document), context_(std::move(context)) {
  build();
  connect(&task_, &BackgroundWork::changed, this, &Alternatives::show_progress);
  connect(&task_, &BackgroundWork::ended, this, &Alternatives::take_result);
  connect(search_, &QPushButton::clicked, this, [this] { is_searching() ? cancel() : search(); });
  connect(rank_, &QComboBox::activated, this, &Alternatives::search);
  connect(targets_, &QComboBox::activated, this, &Alternatives::search);
  connect(apply_, &QPushButton::clicked, this, [this] {
    if (table_->currentIndex().isValid()) apply(sorted_.mapToSource(table_->currentIndex()).row());
  });
  connect(table_, &QTableView::activated, this,
          [this](const QModelIndex& at) { apply(sorted_.mapToSource(at).row()); });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &Alternatives::show_state);
  connect(&document_, &Document::changed, this, &Alternatives::document_changed);
  connect(&document_, &Document::replaced, this, &Alternatives::clear);
}

void Alternatives::build() {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  auto* row = make_layout<QHBoxLayout>(nullptr, {8, 4, 8, 0}, 6);
  search_ = new QPushButton(icon(Glyph::search), tr("Search"), this);
  rank_ = new QComboBox(this);
  rank_->addItems({tr("By time"), tr("By cost"), tr("By memory")});
  rank_->setAccessibleName(tr("Rank plans by"));
  targets_ = new QComboBox(this);
  targets_->addItems({tr("This target"), tr("All targets")});
  targets_->setAccessibleName(tr("Targets searched"));
  targets_->setItemData(1, tr("Search all targets of the catalogue with up to %n device(s)", nullptr, kMostDevices),
                        Qt::ToolTipRole);
  status_ = new QLabel(this);
  status_->setObjectName(u"status"_s);
  status_->setProperty("muted", true);
  status_->setWordWrap(true);
  status_->setTextFormat(Qt::PlainText);
  progress_ = new QProgressBar(this);
  progress_->setMaximumHeight(8);
  progress_->setTextVisible(false);
  progress_->hide();
  for (QWidget* widget : std::initializer_list<QWidget*>{search_, rank_, targets_}) row->addWidget(widget);
  row->addWidget(progress_, 1);
  row->addStretch();
  column->addLayout(row);
  auto* caption = make_layout<QHBoxLayout>(nullptr, {8, 0, 8, 2}, 6);
  caption->addWidget(status_, 1);
  chart_button_ = add_button(*caption, tr("Chart"), tr("Show the plans as points of step time by memory"));
  chart_button_->setCheckable(true);
  apply_ = add_button(*caption, tr("Apply"),
                      tr("Apply mesh, batch, remat and loss chunk of the selected row to the experiment (Enter)"));
  apply_->setEnabled(false);
  sorted_.setSourceModel(&model_);
  sorted_.setSortRole(sort_role);
  table_ = make_table(sorted_, tr("Alternative plans"));
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  chart_ = new Chart({.title = tr("Step time"),
                      .unit = tr("by memory per device"),
                      .quantity = AxisQuantity::seconds,
                      .empty = tr("Search to see every plan that fits as a point"),
                      .from_zero = true},
                     by_memory_);
  by_memory_.set_x(tr("memory"), AxisQuantity::bytes);
  table_->setItemDelegateForColumn(CandidatesModel::mesh, new AxisTextDelegate(table_));
  views_ = new QStackedWidget(this);
  views_->addWidget(table_);
  views_->addWidget(chart_);
  connect(chart_button_, &QPushButton::toggled, views_, &QStackedWidget::setCurrentIndex);
  column->addWidget(views_, 1);
  column->addLayout(caption);
  show_found();
}

void Alternatives::show_progress() {
  const bool busy = is_searching();
  search_->setText(busy ? tr("Stop") : tr("Search"));
  search_->setIcon(icon(busy ? Glyph::stop : Glyph::search));
  progress_->setVisible(busy);
  progress_->setValue(task_.percent());
}

void Alternatives::search() {
  searched_ = document_.experiment();
  task_.start([experiment = searched_, all_targets = targets_->currentIndex() == 1, load = context_,
               by = static_cast<plan::RankBy>(rank_->currentIndex())](const ReportProgress& report,
                                                                      const std::stop_token& stop) {
    const plan::PlanContextPtr held = load();
    const plan::PlanContext& context = *held;
    plan::SearchOptions options{.by = by};
    options.progress = [&](std::int64_t done, std::int64_t total) { report({"searching", done, total}); };
    const auto targets = all_targets ? other_targets(context) : std::vector<std::string>();
    return std::make_shared<const plan::ExperimentSearch>(
        plan::search_experiment(experiment, targets, context, options, stop));
  });
}

// Cancels the search of an earlier state, because its plans could not be applied.
void Alternatives::document_changed() {
  if (is_searching() && !(document_.experiment() == searched_)) cancel();
  const bool outdated =
      found_ && std::find(found_for_.begin(), found_for_.end(), document_.experiment()) == found_for_.end();
  if (outdated == outdated_) return;
  outdated_ = outdated;
  show_state();
}

void Alternatives::clear() {
  if (is_searching()) cancel();
  found_.reset();
  found_for_.clear();
  outdated_ = false;
  model_.show(nullptr);
  show_state();
}

void Alternatives::show_state() {
  table_->setEnabled(!outdated_);
  draw();
  apply_->setEnabled(found_ && !outdated_ && table_->currentIndex().isValid());
  status_->setText(outdated_ ? tr("Outdated: search again") : found_ ? found_text() : QString());
}

QString Alternatives::found_text() const {
  const plan::SearchResult& result = found_->result;
  if (result.candidates.empty() && !result.without_plan.empty())
    return tr("None fits: %1").arg(qs(result.without_plan.front().reason));
  QString text = tr("%1 of %2 fit").arg(result.candidates.size()).arg(result.evaluated);
  if (!found_->cells.empty()) text = tr("%1; %2 simulated").arg(text).arg(found_->cells.size());
  if (result.candidates.size() > kListed) text = tr("%1; the best %2 are listed").arg(text, QString::number(kListed));
  if (const auto& fewer = found_->fewer_chips) text = tr("%1; faster on %2").arg(text, qs(fewer->plan.choice.target));
  return model_.shared().isEmpty() ? text : tr("%1; all: %2").arg(text, model_.shared());
}

void Alternatives::set_searchable(bool on) {
  if (!on && is_searching()) cancel();
  for (QWidget* widget : std::initializer_list<QWidget*>{search_, rank_, targets_}) widget->setEnabled(on);
  search_->setToolTip(
      on ? tr("Find and rank all legal meshes, micro-batches, remat policies, loss chunks, packing, attention, types "
              "of "
              "adapters and moments, and software that fit")
         : tr("Plans are available for other targets only, because the speed of this machine is measured, not "
              "predicted"));
}

void Alternatives::take_result() {
  if (task_.problem()) {
    status_->setText(qs(task_.problem()->message));
    emit problem(*task_.problem());
  }
  if (!task_.result()) return;
  found_ = *task_.result();
  found_for_ = {searched_};
  outdated_ = false;
  show_found();
}

void Alternatives::show_found() {
  model_.show(found_);
  show_state();
  table_->setSortingEnabled(true);
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  sorted_.sort(-1);
  QHeaderView& header = *table_->horizontalHeader();
  const QAbstractItemView& view = *table_;
  for (int c = 0; c < model_.columnCount(); ++c) {
    table_->setColumnHidden(c, !model_.is_column_used(c));
    const QString title = model_.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
    table_->setColumnWidth(c, std::max(view.sizeHintForColumn(c), header.fontMetrics().horizontalAdvance(title) + 18));
  }
  header.setSectionResizeMode(CandidatesModel::settings, QHeaderView::Stretch);  // so it does not scroll sideways
}

void Alternatives::draw() {
  if (!found_) return chart_->set_lines({});
  ParetoPoints plans{.name = tr("plans"),
                     .front_name = tr("Pareto front"),
                     .color = outdated_ ? theme().faint : theme().accent,
                     .origin = LineOrigin::predicted};
  double most = 0;
  for (const Candidate& c : found_->result.candidates) {
    plans.points.push_back({static_cast<double>(c.peak.value), c.seconds});
    plans.front.push_back(c.pareto);
    most = std::max(most, plans.points.back().x);
  }
  if (plans.points.empty()) return;
  by_memory_.set_data({0, most * 1.05});
  chart_->set_lines(pareto_lines(plans));
}

// Changes the document that was searched: a result applied before leaves nothing behind.
void Alternatives::apply(int row) {
  if (!found_ || outdated_) return;
  const plan::PlanChoice to = model_.row(row).choice, from = plan::choice_of(found_->request);
  const lint::Fix fix{.label = plan::to_text(to, found_->request.work), .edits = plan::edits_to(*found_, from, to)};
  experiment::Experiment next = found_for_.front();
  plan::apply(next, fix);
  found_for_.push_back(next);
  document_.replace(std::move(next), tr("choice of %1").arg(qs(fix.label)));
}

}  // namespace mw::ui

#include "moc_alternatives.cpp"
