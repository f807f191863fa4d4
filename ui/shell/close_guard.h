// SPDX-License-Identifier: GPL-3.0-or-later
// Decides whether the window may close: asks about unfinished work and unsaved edits, stops the work or lets it end
// first. GUI thread.
#pragma once
#include <QMainWindow>

#include "ui/session/workspace.h"
#include "ui/shell/document_actions.h"

namespace mw::ui {

class CloseGuard : public QObject {
  Q_OBJECT
 public:
  CloseGuard(QMainWindow& window, Workspace& workspace, DocumentActions& documents, PendingQuestion& question,
             std::vector<WindowPage*> pages);
  bool may_close();         // on a close event; if false, the guard closes the window once it may
  void close_unattended();  // without a question, for the end of the session: a run writes a checkpoint first
  void close_when_done();   // to be called when work has ended
  void window_activated();  // a window that waited for its work to end is used again
  bool is_stopping() const { return closing_ == Closing::stopping; }
  QString title_prefix() const;

 signals:
  void title_changed();

 private:
  QStringList unfinished_work() const;
  bool has_work() const;
  void ask_about(const QStringList& work);
  void stop_work();
  void keep_working();
  QMainWindow& window_;
  Workspace& workspace_;
  RunController& runs_;
  DocumentActions& documents_;
  PendingQuestion& question_;
  std::vector<WindowPage*> pages_;
  enum class Closing { no, stopping, when_done };  // stopping: closes then; when_done: minimised until work is done
  Closing closing_ = Closing::no;
  bool unattended_ = false;
  bool edits_given_up_ = false;  // the user discarded them, and has made none since
};

}  // namespace mw::ui
