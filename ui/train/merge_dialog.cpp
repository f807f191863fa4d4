// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/train/merge_dialog.h"

#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/theme/text.h"

namespace mw::ui {
namespace {
constexpr int kMergeWidth = 640;
}

MergeDialog::MergeDialog(Merger& merger, QWidget* parent) : QDialog(parent), merger_(merger) {
  setWindowTitle(tr("Merge an Adapter"));
  setObjectName(u"merge"_s);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(8);
  auto* about =
      new QLabel(tr("The adapter is added into the base model's weights: a Hugging Face folder, compared by its "
                    "logits with base and adapter before it is called good. Nothing is overwritten."),
                 this);
  about->setWordWrap(true);
  column->addWidget(about);
  auto* form = new QFormLayout;
  base_ = folder(tr("Base model"), tr("Hugging Face folder"), *form);
  adapter_ = folder(tr("Adapter"), tr("PEFT folder, or an Orbax checkpoint of Tunix"), *form);
  out_ = folder(tr("Merged model"), tr("a folder that is not there yet, or is empty"), *form);
  alpha_ = new QLineEdit(this);
  alpha_->setAccessibleName(tr("Alpha"));
  alpha_->setPlaceholderText(tr("only for a checkpoint that does not say it"));
  form->addRow(tr("Alpha"), alpha_);
  column->addLayout(form);
  progress_ = new QProgressBar(this);
  progress_->setAccessibleName(tr("Progress of the merge"));
  column->addWidget(progress_);
  said_ = new QLabel(this);
  said_->setWordWrap(true);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  said_->setAccessibleName(tr("What came of it"));
  column->addWidget(said_);
  column->addStretch(1);
  auto* row = new QHBoxLayout;
  row->addStretch(1);
  cancel_ = new QPushButton(tr("Close"), this);
  merge_ = new QPushButton(tr("Merge"), this);
  merge_->setDefault(true);
  row->addWidget(cancel_);
  row->addWidget(merge_);
  column->addLayout(row);
  setMinimumWidth(kMergeWidth);
  connect(cancel_, &QPushButton::clicked, this, &MergeDialog::reject);
  connect(merge_, &QPushButton::clicked, this, &MergeDialog::begin);
  connect(&merger_, &Merger::changed, this, &MergeDialog::show_state);
  connect(&merger_, &Merger::merged, said_, &QLabel::setText);
  connect(&merger_, &Merger::failed, this, [this](const Problem& p) {
    said_->setText(p.message.empty() ? tr("Cancelled: nothing was written.") : qs(to_text(p)));
  });
  show_state();
}

QLineEdit* MergeDialog::folder(const QString& name, const QString& help, QFormLayout& form) {
  auto* both = new QWidget(this);
  auto* row = new QHBoxLayout(both);
  row->setContentsMargins(0, 0, 0, 0);
  auto* line = new QLineEdit(both);
  line->setAccessibleName(name);
  line->setPlaceholderText(help);
  auto* choose = new QPushButton(tr("Choose…"), both);
  choose->setAccessibleName(tr("Choose: %1").arg(name));
  row->addWidget(line, 1);
  row->addWidget(choose);
  form.addRow(name, both);
  connect(line, &QLineEdit::textChanged, this, &MergeDialog::show_state);
  connect(choose, &QPushButton::clicked, this, [this, line, name] {
    auto* dialog = new QFileDialog(this, name, line->text());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, line, &QLineEdit::setText);
    dialog->open();
  });
  return line;
}

void MergeDialog::open_with(const std::filesystem::path& base, const std::filesystem::path& adapter,
                            const std::filesystem::path& out) {
  if (!merger_.busy()) {
    base_->setText(qpath(base));
    adapter_->setText(qpath(adapter));
    out_->setText(qpath(out));
    alpha_->clear();
    said_->clear();
    show_state();
  }
  open();
}

void MergeDialog::show_state() {
  const bool busy = merger_.busy();
  progress_->setVisible(busy);
  progress_->setRange(0, merger_.checking() ? 0 : 100);
  progress_->setValue(merger_.percent());
  for (QLineEdit* l : {base_, adapter_, out_, alpha_}) l->setEnabled(!busy);
  cancel_->setText(busy ? tr("Cancel") : tr("Close"));
  merge_->setEnabled(!busy && !base_->text().isEmpty() && !adapter_->text().isEmpty() && !out_->text().isEmpty());
}

void MergeDialog::begin() {
  said_->clear();
  runs::MergeRequest request{fspath(base_->text()), fspath(adapter_->text()), fspath(out_->text()), std::nullopt};
  if (const QString text = alpha_->text().trimmed(); !text.isEmpty()) {
    bool good = false;
    request.alpha = text.toFloat(&good);
    if (!good || !(*request.alpha > 0)) return said_->setText(tr("Alpha is a number above 0."));
  }
  merger_.start(std::move(request));
}

QString MergeDialog::said() const {
  return said_->text();
}

void MergeDialog::reject() {
  if (merger_.busy()) return merger_.cancel();
  QDialog::reject();
}

}  // namespace mw::ui
