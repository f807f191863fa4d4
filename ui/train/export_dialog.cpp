// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/train/export_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/theme/text.h"

namespace mw::ui {

ExportDialog::ExportDialog(RecipeExporter& exporter, QWidget* parent) : QDialog(parent), exporter_(exporter) {
  setWindowTitle(tr("Export as a Recipe"));
  setObjectName(u"export"_s);
  build();
  resize(660, 560);
  connect(recipe_, &QComboBox::currentIndexChanged, this, &ExportDialog::look);
  connect(choose_, &QPushButton::clicked, this, &ExportDialog::choose_folder);
  connect(export_, &QPushButton::clicked, this, &ExportDialog::write);
  connect(folder_, &QLineEdit::textChanged, this, &ExportDialog::show_state);
  connect(&exporter_, &RecipeExporter::changed, this, &ExportDialog::show_look);
  connect(&exporter_, &RecipeExporter::failed, this, [this](const Problem& p) { said_->setText(qs(to_text(p))); });
  connect(&exporter_, &RecipeExporter::written, this, [this](const QString& folder, int files) {
    said_->setText(tr("%1 files are in %2. Its README.md says how to run it.").arg(files).arg(folder));
  });
  show_look();
}

void ExportDialog::build() {
  auto* column = new QVBoxLayout(this);
  column->setSpacing(8);
  about_ = new QLabel(this);
  about_->setWordWrap(true);
  column->addWidget(about_);
  auto* form = new QFormLayout;
  recipe_ = new QComboBox(this);
  recipe_->setAccessibleName(tr("Recipe"));
  for (const recipes::Kind kind : recipes::kKinds)
    recipe_->addItem(tr("%1: %2").arg(qs(recipes::to_string(kind)), qs(recipes::described(kind))),
                     qs(recipes::to_string(kind)));
  form->addRow(tr("Recipe"), recipe_);
  auto* where = new QWidget(this);
  auto* row = new QHBoxLayout(where);
  row->setContentsMargins(0, 0, 0, 0);
  folder_ = new QLineEdit(where);
  folder_->setAccessibleName(tr("Folder"));
  folder_->setPlaceholderText(tr("one that is not there yet, is empty, or holds an export"));
  choose_ = new QPushButton(tr("Choose…"), where);
  row->addWidget(folder_, 1);
  row->addWidget(choose_);
  form->addRow(tr("Folder"), where);
  overwrite_ = new QCheckBox(tr("write again what has been changed since an earlier export"), this);
  form->addRow(QString(), overwrite_);
  column->addLayout(form);
  const auto list = [&](const QString& title, int stretch) {
    auto* caption = new QLabel(title, this);
    auto* l = new QListWidget(this);
    l->setAccessibleName(title);
    l->setWordWrap(true);
    l->setSelectionMode(QAbstractItemView::NoSelection);
    column->addWidget(caption);
    column->addWidget(l, stretch);
    return l;
  };
  files_ = list(tr("Files"), 3);
  remarks_ = list(tr("What the checker says of it there"), 3);
  progress_ = new QProgressBar(this);
  progress_->setRange(0, 0);
  progress_->setTextVisible(false);
  progress_->setMaximumHeight(6);
  progress_->setAccessibleName(tr("The recipe is being made"));
  QSizePolicy keeps = progress_->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);
  progress_->setSizePolicy(keeps);
  column->addWidget(progress_);
  said_ = new QLabel(this);
  said_->setWordWrap(true);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  said_->setAccessibleName(tr("What came of it"));
  column->addWidget(said_);
  auto* buttons = new QHBoxLayout;
  buttons->addStretch(1);
  auto* close = new QPushButton(tr("Close"), this);
  export_ = new QPushButton(tr("Export"), this);
  export_->setDefault(true);
  buttons->addWidget(close);
  buttons->addWidget(export_);
  column->addLayout(buttons);
  connect(close, &QPushButton::clicked, this, &QDialog::reject);
}

void ExportDialog::open_with(const runs::Experiment& experiment) {
  experiment_ = experiment;
  const std::string name = experiment.string("name");
  about_->setText(
      tr("<b>%1</b> as a folder that runs it elsewhere, unedited: scripts, settings, the batches where data "
         "and tokenizer are at hand, and a README.")
          .arg((name.empty() ? tr("This experiment") : qs(name)).toHtmlEscaped()));
  look();
  open();
  folder_->setFocus();
}

void ExportDialog::look() {
  said_->clear();
  exporter_.look(recipes::recipe_kind(ss(recipe_->currentData().toString())), experiment_);
}

void ExportDialog::show_state() {
  progress_->setVisible(exporter_.busy());
  export_->setEnabled(!exporter_.busy() && exporter_.looked() && !folder_->text().trimmed().isEmpty());
}

void ExportDialog::show_look() {
  show_state();
  files_->clear();
  remarks_->clear();
  if (!exporter_.looked()) return;
  for (const std::string& file : exporter_.looked()->files) files_->addItem(qs(file));
  const auto& remarks = exporter_.looked()->subject.remarks;
  for (const std::string& remark : remarks) remarks_->addItem(qs(remark));
  if (remarks.empty()) remarks_->addItem(tr("Nothing to object to."));
}

void ExportDialog::choose_folder() {
  auto* dialog = new QFileDialog(this, tr("Folder of the Recipe"), folder_->text());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly);
  connect(dialog, &QFileDialog::fileSelected, folder_, &QLineEdit::setText);
  dialog->open();
}

void ExportDialog::write() {
  said_->clear();
  exporter_.write(fspath(folder_->text().trimmed()),
                  overwrite_->isChecked() ? recipes::Overwrite::changed_files : recipes::Overwrite::refuse);
}

QString ExportDialog::said() const {
  return said_->text();
}

QString ExportDialog::last_recipe() const {
  return recipe_->currentData().toString();
}

void ExportDialog::set_recipe(const QString& name) {
  const QSignalBlocker quiet(recipe_);
  recipe_->setCurrentIndex(std::max(0, recipe_->findData(name)));
}

}  // namespace mw::ui
