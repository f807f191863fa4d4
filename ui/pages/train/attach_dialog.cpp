// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/attach_dialog.h"

#include "core/base/text.h"
#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include "core/import/follow.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr int kAttachWidth = 620;
}

AttachDialog::AttachDialog(RunController& runs, QWidget* parent)
    : TaskDialog(tr("Attach to a Running Program"), u"attach"_s, kAttachWidth, parent), runs_(runs) {
  build();
  connect(confirm_, &QPushButton::clicked, this, &AttachDialog::begin);
  connect(source_, &QLineEdit::textChanged, this, &AttachDialog::show_state);
  connect(name_, &QLineEdit::textChanged, this, &AttachDialog::show_state);
  connect(&runs_, &RunController::state_changed, this, &AttachDialog::show_state);
  connect(&runs_, &RunController::launch_failed, this, [this](const Problem& problem) {
    if (!waiting_) return;
    waiting_ = false;
    result_->show_text(problem.message.empty() ? tr("Cancelled; nothing was recorded.") : qs(to_text(problem)),
                       problem.message.empty() ? ResultText::Tone::plain : ResultText::Tone::bad);
    show_state();
  });
  connect(&runs_, &RunController::launched, this, [this] {
    if (!waiting_) return;
    waiting_ = false;
    accept();
  });
  show_state();
}

void AttachDialog::build() {
  description_->setText(
      tr("Records a run that another program is making and shows it here. The program is not changed and keeps running "
         "when the record is stopped."));
  auto* form = new QFormLayout;
  auto* both = new QWidget(this);
  auto* row = flush_layout<QHBoxLayout>(both);
  source_ = new QLineEdit(both);
  source_->setAccessibleName(tr("Source"));
  source_->setPlaceholderText(tr("events.jsonl, a pipe, http://HOST:PORT/PATH or a log folder"));
  source_->setToolTip(
      tr("File or pipe of event lines, URL that sends them, /metrics of a vLLM server, or the log folder of W&B "
         "(offline), TensorBoard or transformers"));
  row->addWidget(source_, 1);
  form->addRow(tr("Source"), both);
  both->setFocusProxy(source_);
  for (const bool folder : {false, true}) {
    auto* choose = new QPushButton(folder ? tr("Folder\u2026") : tr("File\u2026"), both);
    choose->setAccessibleName(folder ? tr("Choose a log folder") : tr("Choose a file of event lines"));
    choose->setAutoDefault(false);  // Enter activates the default button of the dialog
    row->addWidget(choose);
    connect(choose, &QPushButton::clicked, this, [this, folder] {
      open_file_dialog(this,
                       {.title = folder ? tr("Log Folder") : tr("Event File"),
                        .start = source_->text(),
                        .mode = folder ? QFileDialog::Directory : QFileDialog::ExistingFile},
                       [this](const auto& files) { source_->setText(qpath(files.front())); });
    });
  }
  name_ = add_field(*form, tr("Name"), new QLineEdit(this));
  name_->setPlaceholderText(tr("Name of the run; otherwise that of the source"));
  column_->addLayout(form);
  command_ = muted_label({}, this);
  command_->setWordWrap(true);
  command_->setFont(mono_font(0.92));
  command_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  command_->setAccessibleName(tr("Command line for this record"));
  column_->addWidget(command_);
  add_task_rows({tr("Error"), tr("Opening the source"), tr("Cancel"), tr("Attach")});
}

void AttachDialog::show_state() {
  const QString source = source_->text().trimmed();
  QString command =
      u"meshwright watch --follow %1"_s.arg(source.isEmpty() ? u"SOURCE"_s : qs(mw::shell_quoted(ss(source))));
  if (!name_->text().isEmpty()) command += u" --name %1"_s.arg(qs(mw::shell_quoted(ss(name_->text()))));
  command_->setText(command);
  progress_->setVisible(waiting_);
  for (QWidget* widget : std::initializer_list<QWidget*>{source_, name_}) widget->setEnabled(!waiting_);
  confirm_->setEnabled(!runs_.is_busy() && !source.isEmpty());
  confirm_->setToolTip(runs_.is_busy()    ? tr("Another run is active in this window")
                       : source.isEmpty() ? tr("Enter or choose a source first")
                                          : tr("Record what the source has and gets, and show it here"));
}

void AttachDialog::begin() {
  result_->show_text({});
  waiting_ = true;
  runs_.attach({.source = ss(source_->text().trimmed()), .runs_folder = {}, .name = ss(name_->text().trimmed())});
  show_state();
}

void AttachDialog::reject() {
  if (waiting_) return runs_.stop();
  QDialog::reject();
}

}  // namespace mw::ui

#include "moc_attach_dialog.cpp"
