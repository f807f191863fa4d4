// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the command line that runs the current experiment, ready to copy. GUI thread.
#pragma once
#include <QWidget>

#include "ui/session/document.h"

class QPlainTextEdit;

namespace mw::ui {

// "meshwright run FILE --set ..." with unsaved edits as --set; a document without a file is written to one first.
// Values are quoted for a POSIX shell. `command`: "run" or "size".
QString command_line(const Document& document, const std::filesystem::path& runs_folder,
                     const QString& command = QStringLiteral("run"));
QString shell_quoted(const QString& text);

class CommandView : public QWidget {
  Q_OBJECT
 public:
  CommandView(Document& document, std::filesystem::path runs_folder, QWidget* parent = nullptr);
  void set_command(const QString& command);

 private:
  void refresh();
  Document& document_;
  std::filesystem::path runs_folder_;
  QString command_ = QStringLiteral("run");
  QPlainTextEdit* text_;
};

}  // namespace mw::ui
