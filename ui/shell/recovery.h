// SPDX-License-Identifier: GPL-3.0-or-later
// Offers the unsaved edits and the crash reports of windows that ended without being closed. GUI thread.
#pragma once
#include <QDialog>

#include "ui/session/workspace.h"

class QVBoxLayout;

namespace mw::ui {

class DocumentActions;

// A row for each lost window. Closing the dialog leaves the unanswered ones for the next start. Deletes itself.
class RecoveryDialog : public QDialog {
  Q_OBJECT
 public:
  RecoveryDialog(QWidget& window, Workspace& workspace, Session& session, DocumentActions& documents);

 private:
  void add_row(const Session::LostWindow& lost);
  void answered(int slot, QWidget* row);
  void save_report(const std::string& text);
  Workspace& workspace_;
  Session& session_;
  DocumentActions& documents_;
  QVBoxLayout* column_;
};

// Shows the dialog if there are lost windows.
void offer_recovery(QWidget& window, Workspace& workspace, Session& session, DocumentActions& documents);

}  // namespace mw::ui
