// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/residuals_dialog.h"

#include "ui/session/store_reader.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using compare::Residual;

QString tr_residual(const char* text) {
  return ResidualsDialog::tr(text);
}

QString residual_text(const Residual& row, const std::optional<double>& value) {
  return value ? qs(compare::value_text(row, *value)) : u"\u2013"_s;
}

std::optional<double> predicted_value(const Residual& row) {
  return row.predicted ? std::optional(row.predicted->value) : std::nullopt;
}

QString difference_text(const Residual& row, const std::optional<double>& off) {
  if (!off) return u"\u2013"_s;
  const QString sign = *off > 0 ? u"+"_s : *off < 0 ? u"\u2212"_s : QString();
  return sign + qs(compare::value_text(row, std::abs(*off)));
}

QString relative_text(const Residual&, const std::optional<double>& relative) {
  return relative ? qs(compare::change_text(*relative)) : u"\u2013"_s;
}

TableModel<Residual>::Columns residual_columns() {
  const auto number = [](const QString& title, auto value, auto text) {
    return TableModel<Residual>::number(
        title, [=](const Residual& r) { return text(r, std::invoke(value, r)); },
        [=](const Residual& r) {
          const std::optional<double> key = std::invoke(value, r);
          return key ? QVariant(*key) : QVariant();
        });
  };
  return {{.title = tr_residual("Term"), .text = &Residual::label},
          number(tr_residual("Predicted"), predicted_value, residual_text),
          number(tr_residual("Measured"), &Residual::measured, residual_text),
          number(tr_residual("Difference"), &Residual::difference, difference_text),
          number(tr_residual("Relative"), &Residual::relative, relative_text)};
}

QVariant residual_cell(const Residual& row, int column, int role) {
  if (role == Qt::ForegroundRole && column == 4 && row.is_outside()) return theme().warn;
  if (role == Qt::ToolTipRole && row.predicted && row.predicted->low < row.predicted->high)
    return ResidualsDialog::tr("predicted %1 to %2%3")
        .arg(qs(compare::value_text(row, row.predicted->low)), qs(compare::value_text(row, row.predicted->high)),
             row.is_outside() ? ResidualsDialog::tr("; the measured value is outside") : QString());
  return {};
}

}  // namespace

ResidualsDialog::ResidualsDialog(std::filesystem::path runs_folder, plan::LoadContext context, QWidget* parent)
    : TaskDialog(tr("Predicted and Measured"), u"residualsDialog"_s, 720, parent),
      runs_folder_(std::move(runs_folder)),
      context_(std::move(context)),
      rows_(residual_columns(), residual_cell) {
  table_ = make_table(rows_, tr("Predicted minus measured"), this);
  table_->setMinimumHeight(320);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  copy_on_ctrl_c(*table_);
  column_->addWidget(table_, 1);
  add_task_rows({.result = tr("Notes"),
                 .progress = tr("Progress of the prediction"),
                 .cancel = tr("Close"),
                 .confirm = {},
                 .stretch = 0});
  connect(&task_, &BackgroundWork::ended, this, &ResidualsDialog::show_outcome);
}

void ResidualsDialog::show_run(const store::RunId& run) {
  run_ = run;
  rows_.set_rows({});
  result_->show_text({});
  description_->setText(tr("Run %1: predicting each term\u2026").arg(qs(run)));
  progress_->show();
  open();
  task_.start(with_store(
      runs_folder_, [run, load = context_](store::Store& store, const ReportProgress&, const std::stop_token& stop) {
        return compare::residuals(compare::compared(store, run), *load(), stop);
      }));
}

void ResidualsDialog::show_outcome() {
  progress_->hide();
  if (task_.problem()) {
    description_->setText(tr("Run %1 has no residuals").arg(qs(run_)));
    return result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  }
  if (!task_.result()) return;
  const compare::Residuals& found = *task_.result();
  description_->setText(
      tr("Run %1: predicted minus measured; highlighted values lie outside the interval").arg(qs(run_)));
  rows_.set_rows(found.rows);
  QStringList notes;
  for (const std::string& note : found.notes) notes << qs(note);
  result_->show_text(notes.join(u'\n'));
}

void ResidualsDialog::reject() {
  task_.abandon();
  TaskDialog::reject();
}

}  // namespace mw::ui

#include "moc_residuals_dialog.cpp"
