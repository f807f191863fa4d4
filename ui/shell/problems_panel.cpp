// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problems_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>

#include "core/lint/fixes/diagnostics.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
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
    const lint::Diagnostic& d = model_.row(r);
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
  const lint::Diagnostic& d = model_.row(at.row());
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
    button->setToolTip(with_cost(qs(lint::set_text(fix))));
    button->setAccessibleName(button->text());
    const QString id = qs(d.problem.id);
    connect(button, &QPushButton::clicked, this, [this, fix, id] { emit fix_wanted(fix, id); });
    fixes_->addWidget(button);
    buttons_.push_back(button);
  }
}

}  // namespace mw::ui

#include "moc_problems_panel.cpp"
