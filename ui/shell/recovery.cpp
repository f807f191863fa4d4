// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/recovery.h"

#include <QDialogButtonBox>

#include "core/base/files.h"
#include "ui/shell/document_actions.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr int kLeastWidth = 480;

QString title_of(const Session::Journal& edits) {
  return edits.file.empty() ? RecoveryDialog::tr("An experiment without a file")
                            : QFileInfo(qpath(edits.file)).fileName();
}

QString text_of(const Session::LostWindow& lost) {
  const QString when = QLocale().toString(lost.when, QLocale::ShortFormat);
  if (lost.edits)
    return RecoveryDialog::tr("%1: unsaved edits of a window that ended unexpectedly, %2.")
        .arg(title_of(*lost.edits), when);
  return lost.restored_here
             ? RecoveryDialog::tr("The last session ended unexpectedly, %1. Its document is open in this window.")
                   .arg(when)
             : RecoveryDialog::tr("Another window ended unexpectedly, %1. It had no unsaved edits.").arg(when);
}

}  // namespace

RecoveryDialog::RecoveryDialog(QWidget& window, Workspace& workspace, Session& session, DocumentActions& documents)
    : QDialog(&window),
      workspace_(workspace),
      session_(session),
      documents_(documents),
      column_(new QVBoxLayout(this)) {
  setObjectName(u"recovery"_s);
  setWindowTitle(tr("Unexpected End"));
  setAttribute(Qt::WA_DeleteOnClose);
  setMinimumWidth(kLeastWidth);
  for (const Session::LostWindow& lost : session_.lost_windows()) add_row(lost);
  auto* buttons = new QDialogButtonBox(this);
  QPushButton* later = buttons->addButton(tr("Decide Later"), QDialogButtonBox::RejectRole);
  later->setToolTip(tr("Ask again at the next start about what is still listed"));
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column_->addWidget(buttons);
}

void RecoveryDialog::add_row(const Session::LostWindow& lost) {
  auto* row = new QWidget(this);
  auto* lines = flush_layout<QVBoxLayout>(row);
  auto* text = new QLabel(text_of(lost), row);
  text->setTextFormat(Qt::PlainText);
  text->setWordWrap(true);
  lines->addWidget(text);
  auto* buttons = new QHBoxLayout;
  lines->addLayout(buttons);
  const int slot = lost.slot;
  const auto add = [&](const QString& verb, const QString& tooltip, auto action) {
    QPushButton* button = add_button(*buttons, verb, tooltip);
    button->setAutoDefault(false);
    button->setAccessibleDescription(text->text());
    connect(button, &QPushButton::clicked, this, action);
  };
  if (lost.edits) {
    add(tr("Restore"), tr("Open the document with these edits in this window"), [this, slot, row, edits = *lost.edits] {
      documents_.restore(edits, [this, slot, row] { answered(slot, row); });
    });
    add(tr("Discard"), tr("Delete these edits; the file stays as it was saved"),
        [this, slot, row] { answered(slot, row); });
  }
  if (lost.report)
    add(tr("Save Crash Report…"), tr("Write version, signal, stack and last actions to a text file, without any data"),
        [this, report = *lost.report] { save_report(report); });
  if (!lost.edits) add(tr("Dismiss"), tr("Do not ask about this again"), [this, slot, row] { answered(slot, row); });
  buttons->addStretch(1);
  column_->addWidget(row);
}

void RecoveryDialog::answered(int slot, QWidget* row) {
  session_.forget(slot);
  row->hide();
  row->deleteLater();
  if (session_.lost_windows().empty()) close();
}

void RecoveryDialog::save_report(const std::string& text) {
  const FileDialogOptions options{.title = tr("Save Crash Report"),
                                  .start = u"meshwright-crash.txt"_s,
                                  .filters = tr("Text (*.txt)"),
                                  .suffix = u"txt"_s};
  open_save_dialog(this, options, [this, text](const auto& files) {
    try {
      write_file_atomically(files.front(), text);
    } catch (const Error& error) {
      workspace_.report(ProblemSource::file, error.problem());
    }
  });
}

void offer_recovery(QWidget& window, Workspace& workspace, Session& session, DocumentActions& documents) {
  if (session.lost_windows().empty()) return;
  (new RecoveryDialog(window, workspace, session, documents))->show();
}

}  // namespace mw::ui

#include "moc_recovery.cpp"
