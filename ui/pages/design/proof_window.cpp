// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/proof_window.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QProgressBar>

#include "core/base/files.h"
#include "ui/theme/table_model.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

using ProofTableModel = TableModel<views::ProofRow>;

// The columns of the table, followed by the verdict.
ProofTableModel* proof_model(const views::ProofTable& table) {
  ProofTableModel::Columns columns;
  for (size_t c = 0; c < table.columns.size(); ++c)
    columns.push_back({.title = qs(table.columns[c]),
                       .alignment = c == 0 ? Qt::AlignLeft : Qt::AlignRight,
                       .text = [c](const views::ProofRow& row) { return qs(row.cells[c]); }});
  columns.push_back({.title = ProofWindow::tr("Verdict"), .text = [](const views::ProofRow& row) -> QString {
                       return row.holds ? ProofWindow::tr("\u2713 holds") : ProofWindow::tr("\u2717 differs");
                     }});
  const int verdict = static_cast<int>(table.columns.size());
  const auto color = [verdict](const views::ProofRow& row, int column, int role) -> QVariant {
    if (role != Qt::ForegroundRole || (column != verdict && row.holds)) return {};
    return row.holds ? theme().good : theme().bad;
  };
  auto* model = new ProofTableModel(std::move(columns), color);
  model->set_rows(table.rows);
  return model;
}

}  // namespace

ProofWindow::ProofWindow(Prove prove, QWidget* parent) : QDialog(parent), prove_(std::move(prove)) {
  setWindowTitle(tr("Proof of the Mesh"));
  setModal(false);
  resize(860, 520);
  build();
  connect(&task_, &BackgroundWork::changed, this, &ProofWindow::show_state);
  show_state();
}

void ProofWindow::build() {
  auto* column = new QVBoxLayout(this);
  title_ = new QLabel(this);
  title_->setTextFormat(Qt::RichText);
  title_->setWordWrap(true);
  message_ = muted_label(QString(), this);
  message_->setWordWrap(true);
  bar_ = new QProgressBar(this);
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setAccessibleName(tr("Progress of the proof"));
  tabs_ = new QTabWidget(this);
  tabs_->setDocumentMode(true);
  tabs_->setAccessibleName(tr("Results of the proof"));
  column->addWidget(title_);
  column->addWidget(message_);
  column->addWidget(bar_);
  column->addWidget(tabs_, 1);
  auto* row = new QHBoxLayout;
  column->addLayout(row);
  cancel_ = add_button(*row, tr("Cancel"), tr("Stop the proof and discard its results"));
  again_ = add_button(*row, tr("Prove Again"), tr("Repeat the proof for the same run or the current form"));
  row->addStretch(1);
  copy_ = add_button(*row, tr("Copy as Markdown"), {});
  save_ = add_button(*row, tr("Save…"), tr("Save all tables as CSV or Markdown"));
  QPushButton* close = add_button(*row, tr("Close"), {});
  for (QPushButton* b : {cancel_, again_, copy_, save_, close}) b->setAutoDefault(false);
  connect(cancel_, &QPushButton::clicked, &task_, &BackgroundWork::cancel);
  connect(again_, &QPushButton::clicked, this, &ProofWindow::again_wanted);
  connect(copy_, &QPushButton::clicked, this, [this] {
    if (shown_) QGuiApplication::clipboard()->setText(qs(to_markdown(*shown_)));
  });
  connect(save_, &QPushButton::clicked, this, &ProofWindow::choose_file);
  connect(close, &QPushButton::clicked, this, &QDialog::close);
}

void ProofWindow::start(const QString& name, const experiment::Experiment& experiment) {
  setWindowTitle(tr("Proof of the Mesh \u2013 %1").arg(name));
  task_.start([prove = prove_, experiment](const ReportProgress& report, const std::stop_token& stop) {
    return std::make_shared<const views::ProofView>(prove(experiment, report, stop));
  });
}

QString ProofWindow::verdict() {
  if (task_.is_busy()) return task_.is_cancelling() ? tr("Stopping") : tr("Proving");
  if (task_.was_cancelled()) return tr("Cancelled");
  if (task_.problem()) return tr("The proof failed to run");
  if (!proof()) return tr("No proof yet");
  return proof()->holds ? tr("Holds") : tr("Does not hold");
}

void ProofWindow::show_state() {
  const Theme& t = theme();
  const bool busy = task_.is_busy();
  const bool ended = !busy && proof();
  const QColor color = ended ? (proof()->holds ? t.good : t.bad) : task_.problem() ? t.bad : t.text;
  title_->setText(u"<span style='color:%1; font-size:large'><b>%2</b></span>"_s.arg(color.name(), verdict()));
  bar_->setVisible(busy);
  cancel_->setVisible(busy);
  cancel_->setEnabled(!task_.is_cancelling());
  again_->setVisible(!busy);
  copy_->setEnabled(ended);
  save_->setEnabled(ended);
  show_frame();
  if (shown_ == proof()) return;
  shown_ = proof();
  show_proof();
}

void ProofWindow::show_frame() {
  if (task_.is_busy()) {
    const event::Progress& p = task_.progress();
    QString text = qs(p.phase);
    if (p.total > 0) text = tr("%1, %2 of %3").arg(text, QString::number(p.done), QString::number(p.total));
    if (const auto eta = task_.eta_seconds()) text = tr("%1, about %2 left").arg(text, qs(to_text(Seconds(*eta))));
    message_->setText(text);
    bar_->setValue(p.total > 0 ? static_cast<int>(1000 * p.done / p.total) : 0);
  } else if (task_.problem()) {
    message_->setText(qs(to_text(*task_.problem())));
  } else if (proof()) {
    message_->setText(qs(proof()->verdict));
  } else {
    message_->setText(
        tr("Runs one step on the mesh and on one device, and compares every tensor, the traffic and the memory with "
           "the plan."));
  }
}

void ProofWindow::show_proof() {
  while (tabs_->count() > 0) {
    QWidget* page = tabs_->widget(0);
    tabs_->removeTab(0);
    page->deleteLater();
  }
  if (!shown_) return;
  int broken_tab = -1;
  for (size_t i = 0; i < shown_->tables.size(); ++i) {
    const views::ProofTable& table = shown_->tables[i];
    ProofTableModel* model = proof_model(table);
    QTableView* view = make_table(*model, tr("Proof: %1").arg(qs(table.title)));
    model->setParent(view);
    view->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    view->horizontalHeader()->setStretchLastSection(true);
    const int broken = table.broken();
    tabs_->addTab(view, broken > 0 ? tr("%1 (%2 differ)").arg(qs(table.title)).arg(broken) : qs(table.title));
    if (i == 0)
      connect(view->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
              [this, model](const QModelIndex& at) {
                if (at.isValid()) emit tensor_chosen(model->index(at.row(), 0).data().toString());
              });
    if (broken == 0) continue;
    view->selectRow(table.first_broken());
    view->scrollTo(model->index(table.first_broken(), 0), QAbstractItemView::PositionAtCenter);
    if (broken_tab < 0) broken_tab = static_cast<int>(i);
  }
  if (broken_tab >= 0) tabs_->setCurrentIndex(broken_tab);
}

void ProofWindow::export_to(const std::filesystem::path& file) {
  if (!shown_) return;
  try {
    write_file_atomically(file, file.extension() == ".md" ? to_markdown(*shown_) : to_csv(*shown_));
  } catch (const Error& error) {
    emit problem(error.problem());
  }
}

void ProofWindow::choose_file() {
  QFileDialog* dialog = open_save_dialog(this,
                                         {.title = tr("Save Proof"),
                                          .start = u"proof.csv"_s,
                                          .filters = tr("CSV (*.csv);;Markdown (*.md)"),
                                          .suffix = u"csv"_s},
                                         [this](const auto& files) { export_to(files.front()); });
  connect(dialog, &QFileDialog::filterSelected, dialog,
          [dialog](const QString& filter) { dialog->setDefaultSuffix(filter.contains(u"md"_s) ? u"md"_s : u"csv"_s); });
}

}  // namespace mw::ui

#include "moc_proof_window.cpp"
