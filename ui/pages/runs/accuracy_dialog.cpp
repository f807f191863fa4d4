// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/accuracy_dialog.h"

#include <QComboBox>
#include <QSortFilterProxyModel>

#include "core/audit/calibrating.h"
#include "core/base/units.h"
#include "core/store/store.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using audit::AccuracyGroup;
using audit::AccuracyRow;
using plan::FigureKind;
using plan::MeasurementUse;

QString tr_accuracy(const char* text) {
  return AccuracyDialog::tr(text);
}

QString kind_name(FigureKind kind) {
  switch (kind) {
    case FigureKind::training:
      return tr_accuracy("Training time");
    case FigureKind::memory:
      return tr_accuracy("Memory");
    case FigureKind::throughput:
      return tr_accuracy("Output tokens/s");
    case FigureKind::tpot:
      return tr_accuracy("Time per output token");
    case FigureKind::ttft:
      return tr_accuracy("Time to first token");
  }
  return {};
}

QString use_name(MeasurementUse use) {
  return use == MeasurementUse::calibration ? tr_accuracy("calibration") : tr_accuracy("holdout");
}

QString share_text(double share) {
  return QString::number(100 * share, 'f', 1) + u" %"_s;
}

QVariant error_key(const AccuracyRow& r) {
  return r.refused.empty() ? QVariant(std::abs(r.error)) : QVariant(1e9);
}

TableModel<AccuracyRow>::Columns accuracy_columns() {
  using Table = TableModel<AccuracyRow>;
  return {{.title = tr_accuracy("Measurement"), .text = &AccuracyRow::id},
          {.title = tr_accuracy("Use"), .text = [](const auto& r) { return use_name(r.use); }},
          {.title = tr_accuracy("Stack"), .text = &AccuracyRow::stack},
          {.title = tr_accuracy("Chip"), .text = &AccuracyRow::chip},
          Table::number_of(tr_accuracy("Measured"), &AccuracyRow::measured,
                           [](double value) { return qs(number_text(value)); }),
          Table::number(
              tr_accuracy("Predicted"),
              [](const auto& r) { return r.refused.empty() ? qs(number_text(r.predicted)) : u"\u2013"_s; },
              [](const auto& r) { return QVariant(r.predicted); }),
          {.title = tr_accuracy("Unit"), .text = &AccuracyRow::unit},
          Table::number(
              tr_accuracy("Error"), [](const auto& r) { return qs(audit::error_text(r)); }, error_key),
          Table::number(tr_accuracy("90 % Interval"), [](const auto& r) { return qs(audit::interval_text(r)); })};
}

QVariant accuracy_cell(const AccuracyRow& row, int column, int role) {
  if (role == Qt::ForegroundRole && column >= 7 && (!row.refused.empty() || (row.has_interval() && !row.is_inside())))
    return theme().warn;
  if (role != Qt::ToolTipRole) return {};
  QString tip = tr_accuracy("%1 on %2, %3").arg(qs(row.model), qs(row.target), qs(row.source));
  if (!row.refused.empty()) tip += u"\n"_s + tr_accuracy("Refused: %1").arg(qs(row.refused));
  if (row.has_interval() && !row.is_inside())
    tip += u"\n"_s + tr_accuracy("The measured value is outside the interval");
  return tip;
}

TableModel<AccuracyGroup>::Columns total_columns() {
  using Table = TableModel<AccuracyGroup>;
  const auto count = [](int value) { return QString::number(value); };
  return {
      {.title = tr_accuracy("Kind"),
       .text =
           [](const AccuracyGroup& g) {
             if (g.vendor) return tr_accuracy("%1, %2").arg(kind_name(g.kind), qs(audit::vendor_text(*g.vendor)));
             return g.stable_only ? tr_accuracy("%1, stable load").arg(kind_name(g.kind)) : kind_name(g.kind);
           }},
      {.title = tr_accuracy("Use"), .text = [](const auto& g) { return use_name(g.use); }},
      Table::number_of(tr_accuracy("Rows"), &AccuracyGroup::rows, count),
      Table::number_of(tr_accuracy("Refused"), &AccuracyGroup::refused, count),
      Table::number_of(tr_accuracy("Mean Error"), &AccuracyGroup::mean, share_text),
      Table::number_of(tr_accuracy("Worst"), &AccuracyGroup::worst, share_text),
      Table::number(
          tr_accuracy("Inside the Interval"),
          [](const auto& g) {
            return g.with_interval == 0
                       ? u"\u2013"_s
                       : tr_accuracy("%1 of %2, %3").arg(g.inside).arg(g.with_interval).arg(share_text(g.coverage()));
          },
          [](const auto& g) { return QVariant(g.coverage()); })};
}

}  // namespace

AccuracyDialog::AccuracyDialog(std::filesystem::path resources, plan::LoadContext context, QWidget* parent)
    : TaskDialog(tr("Accuracy of Predictions"), u"accuracyDialog"_s, 920, parent),
      resources_(std::move(resources)),
      context_(std::move(context)),
      rows_(accuracy_columns(), accuracy_cell),
      totals_(total_columns()),
      sorted_(new QSortFilterProxyModel(this)),
      kind_(new QComboBox(this)) {
  totals_table_ = make_table(totals_, tr("Errors by kind of figure"), this);
  totals_table_->setFixedHeight(190);
  totals_table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  totals_table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  column_->addWidget(totals_table_);
  for (const FigureKind kind : all_values<FigureKind>()) kind_->addItem(kind_name(kind));
  kind_->setAccessibleName(tr("Kind of figure"));
  column_->addWidget(kind_, 0, Qt::AlignLeft);
  chart_ = new Chart({.title = tr("Predicted / measured"),
                      .quantity = AxisQuantity::plain,
                      .empty = tr("No prediction of this kind"),
                      .from_zero = true},
                     link_, this);
  chart_->setMinimumHeight(190);
  column_->addWidget(chart_, 1);
  sorted_->setSourceModel(&rows_);
  sorted_->setSortRole(sort_role);
  rows_table_ = make_table(*sorted_, tr("Published measurements and their predictions"), this);
  rows_table_->setSortingEnabled(true);
  rows_table_->sortByColumn(-1, Qt::AscendingOrder);  // as in the file
  rows_table_->setMinimumHeight(200);
  rows_table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  rows_table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  copy_on_ctrl_c(*rows_table_);
  column_->addWidget(rows_table_, 2);
  add_task_rows({.result = tr("Notes"),
                 .progress = tr("Progress of the predictions"),
                 .cancel = tr("Close"),
                 .confirm = tr("Predict Again"),
                 .stretch = 0});
  confirm_->setToolTip(tr("Predict all rows with the current calibration"));
  connect(confirm_, &QPushButton::clicked, this, [this] { show_accuracy(); });
  connect(kind_, &QComboBox::currentIndexChanged, this, &AccuracyDialog::show_rows);
  connect(&task_, &BackgroundWork::ended, this, &AccuracyDialog::show_report);
}

void AccuracyDialog::show_accuracy() {
  description_->setText(tr("Predicting every published measurement\u2026"));
  result_->show_text({});
  confirm_->setEnabled(false);
  progress_->show();
  open();
  task_.start([resources = resources_, load = context_](const ReportProgress&, const std::stop_token& stop) {
    return audit::accuracy({.resources = resources, .date = store::today_utc()}, *load(), stop);
  });
}

void AccuracyDialog::show_report() {
  progress_->hide();
  confirm_->setEnabled(true);
  if (task_.problem()) {
    description_->setText(tr("The measurements cannot be predicted"));
    return result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  }
  if (!task_.result()) return;
  const audit::AccuracyReport& report = *task_.result();
  totals_.set_rows(report.totals);
  description_->setText(
      tr("%1 published figures, predicted with the calibration: %2. Holdout rows are never fitted to.")
          .arg(report.rows.size())
          .arg(qs(report.calibration)));
  show_rows();
}

void AccuracyDialog::show_rows() {
  if (!task_.result()) return;
  std::vector<AccuracyRow> shown;
  for (const AccuracyRow& r : task_.result()->rows)
    if (r.kind == static_cast<FigureKind>(kind_->currentIndex())) shown.push_back(r);
  draw(shown);
  rows_.set_rows(std::move(shown));
}

// Points on the line are predicted exactly. A gap before each point prevents a connecting line.
void AccuracyDialog::draw(const std::vector<AccuracyRow>& shown) {
  auto exact = std::make_shared<views::Series>();
  std::shared_ptr<views::Series> fitted = std::make_shared<views::Series>(), held = std::make_shared<views::Series>();
  double at = 0;
  for (const AccuracyRow& r : shown) {
    ++at;
    if (!r.refused.empty()) continue;
    views::Series& series = r.use == MeasurementUse::calibration ? *fitted : *held;
    series.append(at, std::nan(""));
    series.append(at, 1 + r.error);
  }
  if (fitted->empty() && held->empty()) return chart_->set_lines({});
  exact->append(0, 1);
  exact->append(at + 1, 1);
  link_.set_x(tr("row"), AxisQuantity::count);
  link_.set_data({0, at + 1});
  std::vector<ChartLine> lines{{.name = tr("measured"), .color = theme().muted, .raw = exact}};
  const auto add = [&](const QString& name, const QColor& color, const std::shared_ptr<views::Series>& series,
                       Marks marks) {
    if (!series->empty())
      lines.push_back({.name = name, .color = color, .raw = series, .origin = LineOrigin::predicted, .marks = marks});
  };
  add(tr("calibration"), theme().series(3), fitted, Marks::points);
  add(tr("holdout"), theme().accent, held, Marks::squares);
  chart_->set_lines(std::move(lines));
}

void AccuracyDialog::reject() {
  task_.abandon();
  TaskDialog::reject();
}

}  // namespace mw::ui

#include "moc_accuracy_dialog.cpp"
