// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/runs_at_playhead.h"

#include <QComboBox>

#include "ui/run_views/playhead_bar.h"

namespace mw::ui {
namespace {

using Snapshot = compare::RunSnapshot;

TableModel<Snapshot>::Columns snapshot_columns(const QStringList& names) {
  using Table = TableModel<Snapshot>;
  const auto number = [](const QString& title, std::optional<double> Snapshot::*member, int digits) {
    return Table::number(
        title, [=](const auto& s) { return s.*member ? QString::number(*(s.*member), 'g', digits) : QString(); });
  };
  const auto bytes = [](const QString& title, std::optional<Bytes> Snapshot::*member) {
    return Table::number(title, [=](const auto& s) { return s.*member ? shown(*(s.*member)) : QString(); });
  };
  return {{.title = RunsAtPlayhead::tr("Run"),
           .text = [&names](const auto& s) { return names.value(static_cast<qsizetype>(s.column)); }},
          Table::number(RunsAtPlayhead::tr("Step"),
                        [](const auto& s) {
                          return s.ended ? RunsAtPlayhead::tr("%1 (last)").arg(s.step) : QString::number(s.step);
                        }),
          Table::number(RunsAtPlayhead::tr("Time"),
                        [](const auto& s) { return s.time_s ? shown(Seconds(*s.time_s)) : QString(); }),
          number(RunsAtPlayhead::tr("Train loss"), &Snapshot::loss, 5),
          number(RunsAtPlayhead::tr("Eval loss"), &Snapshot::eval_loss, 5),
          number(RunsAtPlayhead::tr("Rate"), &Snapshot::learning_rate, 3),
          number(RunsAtPlayhead::tr("Norm"), &Snapshot::gradient_norm, 3),
          number(RunsAtPlayhead::tr("Tokens/s"), &Snapshot::tokens_per_second, 4),
          bytes(RunsAtPlayhead::tr("Memory"), &Snapshot::memory),
          bytes(RunsAtPlayhead::tr("Moved"), &Snapshot::moved)};
}

}  // namespace

RunsAtPlayhead::RunsAtPlayhead(const std::vector<compare::ComparedRun>& runs, const QStringList& names, QWidget* parent)
    : QWidget(parent), runs_(runs), snapshots_(snapshot_columns(names)), axis_(new QComboBox) {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  auto* row = flush_layout<QHBoxLayout>(nullptr, 5);
  bar_ = new PlayheadBar(link_, this, PlayheadBar::Controls::playhead);
  row->addWidget(bar_, 1);
  add_labelled(*row, tr("Over"), axis_);
  axis_->addItems({tr("Steps"), tr("Time")});
  axis_->setToolTip(tr("Whether the charts and the playhead compare equal steps or equal times since the start"));
  column->addLayout(row);
  QTableView* table = make_table(snapshots_, tr("State of the runs at the playhead"), this);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  constexpr int kHeight = 96;  // header and three runs
  table->setFixedHeight(kHeight);
  copy_on_ctrl_c(*table);
  column->addWidget(table);
  connect(axis_, &QComboBox::currentIndexChanged, this, [this] {
    link_.reset();
    emit axis_changed();
  });
  connect(&link_, &ChartLink::cursor_changed, this, &RunsAtPlayhead::show_snapshots);
}

bool RunsAtPlayhead::by_time() const {
  return axis_->currentIndex() == 1;
}

void RunsAtPlayhead::refresh() {
  bar_->set_data(link_.data());
  show_snapshots();
}

void RunsAtPlayhead::show_snapshots() {
  const std::optional<double> at = link_.reading();
  snapshots_.set_rows(
      compare::snapshots_at(runs_, by_time() ? views::Playhead{std::nullopt, at} : views::Playhead{at, std::nullopt}));
}

}  // namespace mw::ui

#include "moc_runs_at_playhead.cpp"
