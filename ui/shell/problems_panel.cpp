// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problems_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include "core/jobs/out_of_memory.h"
#include "ui/form/experiment_panel.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/window_docks.h"

namespace mw::ui {
namespace {

QString message_text(const Problem& p) {
  const QString s = capitalized(qs(p.message));
  QStringList notes;
  if (!p.found.empty()) notes << ProblemsModel::tr("found %1").arg(qs(p.found));
  if (!p.expected.empty()) notes << ProblemsModel::tr("expected %1").arg(qs(p.expected));
  return notes.isEmpty() ? s : QString(s + u" ("_s + notes.join(u"; "_s) + u')');
}

QString severity_text(const Problem& p) {
  return p.severity == Severity::error     ? ProblemsModel::tr("\u25CF Error")
         : p.severity == Severity::warning ? ProblemsModel::tr("\u25B2 Warning")
                                           : ProblemsModel::tr("\u2022 Note");
}

QString place_text(const Problem& p) {
  if (p.file.empty() || p.file == "experiment") return qs(p.place);
  const QString file = qs(p.file.substr(p.file.find_last_of('/') + 1));
  return p.place.empty() ? file : QString(file + u", "_s + qs(p.place));
}

QString fix_text(const plan::Diagnostic& d) {
  return capitalized(qs(d.fixes.empty() ? d.problem.fix : d.fixes.front().label));
}

}  // namespace

ProblemsModel::ProblemsModel()
    : TableModel({{.title = tr("Severity"), .text = [](const auto& d) { return severity_text(d.problem); }},
                  {.title = tr("Place"), .text = [](const auto& d) { return place_text(d.problem); }},
                  {.title = tr("Message"), .text = [](const auto& d) { return message_text(d.problem); }},
                  {.title = tr("What to do"), .text = [](const auto& d) { return fix_text(d); }},
                  {.title = tr("Fix"), .text = [](const auto&) { return QString(); }}},
                 [](const plan::Diagnostic& d, int column, int role) -> QVariant {
                   if (role == Qt::ToolTipRole) return qs(to_text(d.problem));
                   const bool coloured = role == Qt::ForegroundRole && column == severity;
                   return coloured ? QVariant(theme().severity(d.problem.severity)) : QVariant();
                 }) {}

void ProblemsModel::set(ProblemSource source, const std::vector<Problem>& problems) {
  std::vector<plan::Diagnostic> diagnostics;
  for (const Problem& p : problems) diagnostics.push_back({.problem = p, .why = {}, .evidence = {}});
  set_diagnostics(source, std::move(diagnostics));
}

void ProblemsModel::set_diagnostics(ProblemSource source, std::vector<plan::Diagnostic> diagnostics) {
  if (by_source_[source] == diagnostics) return;
  by_source_[source] = std::move(diagnostics);
  std::vector<plan::Diagnostic> all;
  for (const auto& [from, list] : by_source_) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.problem.severity > b.problem.severity; });
  set_rows(std::move(all));
  emit counted();
}

int ProblemsModel::count(Severity of) const {
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [&](const auto& d) { return d.problem.severity == of; }));
}

int ProblemsModel::count(Severity of, std::initializer_list<ProblemSource> from) const {
  std::ptrdiff_t n = 0;
  for (const ProblemSource source : from)
    if (const auto list = by_source_.find(source); list != by_source_.end())
      n += std::count_if(list->second.begin(), list->second.end(),
                         [&](const auto& d) { return d.problem.severity == of; });
  return static_cast<int>(n);
}

namespace {
constexpr int kDetailsWidth = 400;

QLabel* text_label(bool muted) {
  auto* label = new QLabel;
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setProperty("muted", muted);
  return label;
}
}  // namespace

ProblemsPanel::ProblemsPanel(ProblemsModel& model, QWidget* parent)
    : QWidget(parent),
      model_(model),
      table_(make_table(model, tr("Problems"))),
      details_(new QScrollArea),
      title_(text_label(false)),
      why_(text_label(false)),
      evidence_(text_label(true)),
      fixes_(new QVBoxLayout) {
  build_table();
  auto* row = flush_layout<QHBoxLayout>(this, 0);
  row->addWidget(table_, 1);
  row->addWidget(details_);
  auto* body = new QWidget;
  body->setObjectName(u"panelBody"_s);
  body->setAttribute(Qt::WA_StyledBackground);
  auto* column = make_layout<QVBoxLayout>(body, {10, 6, 10, 6}, 5);
  column->addWidget(title_);
  column->addLayout(fixes_);
  column->addWidget(why_);
  column->addWidget(evidence_);
  column->addStretch(1);
  details_->setWidget(body);
  details_->setWidgetResizable(true);
  details_->setFixedWidth(kDetailsWidth);
  details_->setFrameShape(QFrame::NoFrame);
  details_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  details_->setFocusPolicy(Qt::NoFocus);
  details_->hide();
  for (const auto signal : {&QTableView::clicked, &QTableView::activated})
    connect(table_, signal, this, [this](const QModelIndex& at) { emit chosen(model_.problem(at.row())); });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& at) {
    kept_id_ = at.isValid() ? model_.problem(at.row()).id : std::string();
    show_details();
  });
  connect(&model_, &ProblemsModel::modelReset, this, [this] {
    const std::string kept = kept_id_;
    for (int r = 0; r < model_.rowCount() && !kept.empty(); ++r)
      if (model_.problem(r).id == kept) {
        table_->selectRow(r);
        break;
      }
    kept_id_ = kept;
    add_fix_buttons();
    show_details();
  });
  connect(table_->horizontalHeader(), &QHeaderView::sectionResized, table_, &QTableView::resizeRowsToContents,
          Qt::QueuedConnection);  // once all columns have their widths
}

void ProblemsPanel::build_table() {
  show_when_empty(*table_, tr("No problems"));
  table_->setAlternatingRowColors(false);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->setWordWrap(true);
  table_->setColumnWidth(ProblemsModel::severity, 90);
  table_->setColumnWidth(ProblemsModel::place, 150);
  for (const int wrapped : {ProblemsModel::message, ProblemsModel::fix})
    table_->horizontalHeader()->setSectionResizeMode(wrapped, QHeaderView::Stretch);
  table_->setColumnWidth(ProblemsModel::apply, 64);
}

// The first fix of each problem; the details offer all of them.
void ProblemsPanel::add_fix_buttons() {
  for (int r = 0; r < model_.rowCount(); ++r) {
    const plan::Diagnostic& d = model_.row(r);
    if (d.fixes.empty()) continue;
    auto* cell = new QWidget;
    QPushButton* button = add_button(*make_layout<QHBoxLayout>(cell, {4, 1, 4, 1}), tr("Fix"), {});
    button->setAccessibleName(tr("Fix: %1").arg(qs(d.fixes.front().label)));
    button->setToolTip(tr("Apply: %1").arg(qs(d.fixes.front().label)));
    connect(button, &QPushButton::clicked, this,
            [this, fix = d.fixes.front(), id = qs(d.problem.id)] { emit fix_wanted(fix, id); });
    table_->setIndexWidget(model_.index(r, ProblemsModel::apply), cell);
  }
  table_->resizeRowsToContents();
}

void ProblemsPanel::choose(int row) {
  table_->selectRow(row);
}

bool ProblemsPanel::fix_first() {
  int row = table_->currentIndex().isValid() ? table_->currentIndex().row() : -1;
  for (int r = 0; row < 0 && r < model_.rowCount(); ++r)
    if (!model_.row(r).fixes.empty()) row = r;
  if (row < 0 || model_.row(row).fixes.empty()) return false;
  emit fix_wanted(model_.row(row).fixes.front(), qs(model_.problem(row).id));
  return true;
}

QString ProblemsPanel::why() const {
  return details_->isHidden() ? QString() : why_->text();
}

void ProblemsPanel::show_details() {
  for (QPushButton* button : buttons_) button->deleteLater();
  buttons_.clear();
  const QModelIndex at = table_->currentIndex();
  const bool any = at.isValid() && (!model_.row(at.row()).why.empty() || !model_.row(at.row()).fixes.empty());
  details_->setVisible(any);
  if (!any) return;
  const plan::Diagnostic& d = model_.row(at.row());
  title_->setText(qs(d.problem.id) + u": "_s + qs(d.problem.message));
  why_->setText(qs(d.why));
  why_->setVisible(!d.why.empty());
  evidence_->setText(tr("Evidence: %1").arg(qs(d.evidence)));
  evidence_->setVisible(!d.evidence.empty());
  for (const lint::Fix& fix : d.fixes) {
    const auto with_cost = [&fix](const QString& text) {
      return fix.cost.empty() ? text : tr("%1 (%2)").arg(text, qs(fix.cost));
    };
    auto* button = new QPushButton(with_cost(tr("Fix: %1").arg(qs(fix.label))));
    button->setToolTip(with_cost(qs(plan::set_text(fix))));
    button->setAccessibleName(button->text());
    const QString id = qs(d.problem.id);
    connect(button, &QPushButton::clicked, this, [this, fix, id] { emit fix_wanted(fix, id); });
    fixes_->addWidget(button);
    buttons_.push_back(button);
  }
}

ProblemCollector::ProblemCollector(Workspace& workspace, ProblemsModel& problems, WindowDocks& docks,
                                   StatusStrip& strip, const PageStack& pages)
    : QObject(&docks), workspace_(workspace), problems_(problems), docks_(docks), strip_(strip), pages_(pages.all()) {
  // Typing passes through invalid values: the panel must not open and close with every key.
  withdraw_.setSingleShot(true);
  withdraw_.setInterval(1500);
  connect(&withdraw_, &QTimer::timeout, docks.bottom, &BottomDocks::withdraw);
  connect(&problems, &ProblemsModel::counted, this, &ProblemCollector::show_counts);
  // After the figures of the strip have been painted, which a list of fixes would hold up.
  predicted_.setSingleShot(true);
  connect(&predicted_, &QTimer::timeout, this, [this] {
    if (!workspace_.predictor().is_stale()) show_predicted();
  });
  connect(&workspace.predictor(), &Predictor::changed, this, [this] { predicted_.start(0); });
  connect(&workspace.runs(), &RunController::state_changed, this, &ProblemCollector::offer_memory_fixes);
  connect(&docks.problems, &ProblemsPanel::chosen, this,
          [this](const Problem& problem) { docks_.panel.go_to(problem); });
  connect(&docks.problems, &ProblemsPanel::fix_wanted, this, [this](const lint::Fix& fix, const QString& id) {
    experiment::Experiment next = workspace_.document().experiment();
    plan::apply(next, fix);
    workspace_.document().replace(std::move(next), tr("fix of %1").arg(id));
    problems_.clear(ProblemSource::run);  // of the experiment before
  });
  connect(&strip.error_link(), &ErrorLink::clicked, this, &ProblemCollector::show_errors);
  for (WindowPage* page : pages_)
    if (ErrorLink* link = page->prediction_errors())
      connect(link, &ErrorLink::clicked, this, &ProblemCollector::show_errors);
}

// A run that ended for want of memory leaves its fixes in the list.
void ProblemCollector::offer_memory_fixes() {
  const RunPtr run = workspace_.runs().shown();
  if (workspace_.runs().is_busy() || !run || !run->view.finished() || run->id == offered_fixes_of_) return;
  if (auto failure = jobs::memory_diagnostic(*run->view.finished())) {
    offered_fixes_of_ = run->id;
    problems_.set_diagnostics(ProblemSource::run, {std::move(*failure)});
    docks_.raise(u"problems"_s);
  }
}

// Omits problems that the document reports, or the checker with a fix.
void ProblemCollector::show_predicted() {
  const Predictor& predictor = workspace_.predictor();
  const auto& reported = workspace_.document().problems();
  const auto& checked = predictor.diagnostics();
  std::vector<Problem> more;
  for (const Problem& p : predictor.problems())
    if (std::ranges::none_of(reported, [&](const Problem& d) { return d.id == p.id && d.place == p.place; }) &&
        std::ranges::none_of(checked, [&](const plan::Diagnostic& d) { return d.problem.id == p.id; }))
      more.push_back(p);
  problems_.set(ProblemSource::prediction, more);
  problems_.set_diagnostics(ProblemSource::checker, checked);
}

void ProblemCollector::show_counts() {
  const int errors = problems_.count(Severity::error), warnings = problems_.count(Severity::warning);
  docks_.show_problem_counts(errors, warnings);
  if (errors + warnings > 0) {
    withdraw_.stop();
    docks_.bottom->offer();
  } else {
    withdraw_.start();
  }
  // Errors of the document prevent a prediction; without any, errors of planner or checker do.
  int preventing = problems_.count(Severity::error, {ProblemSource::document});
  if (preventing == 0)
    preventing = problems_.count(Severity::error, {ProblemSource::prediction, ProblemSource::checker});
  strip_.set_errors(preventing);
  for (WindowPage* page : pages_)
    if (ErrorLink* link = page->prediction_errors()) link->set_errors(preventing);
}

// Errors come first in the list.
void ProblemCollector::show_errors() {
  docks_.raise(u"problems"_s);
  if (problems_.rowCount() > 0) docks_.problems.choose(0);
  docks_.problems.table().setFocus(Qt::OtherFocusReason);
}

}  // namespace mw::ui

#include "moc_problems_panel.cpp"
