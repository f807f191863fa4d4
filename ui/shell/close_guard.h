// SPDX-License-Identifier: GPL-3.0-or-later
// Decides whether the window may close: asks about unfinished work and unsaved edits, stops the work or lets it end
// first. GUI thread.
#pragma once
#include <QMainWindow>

#include "ui/shell/document_actions.h"

namespace mw::ui {

class CloseGuard : public QObject {
  Q_OBJECT
 public:
  CloseGuard(QMainWindow& window, Workspace& workspace, DocumentActions& documents, PendingQuestion& question,
             std::vector<WindowPage*> pages);
  bool may_close();         // on a close event; if false, the guard may close the window later
  void close_unattended();  // for the end of the session: asks nothing; a run writes a checkpoint first
  void close_when_done();   // call it when work has ended
  void window_activated();  // cancels closing if the user uses a waiting window again
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
  enum class Closing {
    no,
    stopping,
    when_done
  };  // stopping: closes after stopping; when_done: minimised until the work is done
  Closing closing_ = Closing::no;
  bool unattended_ = false;
  bool edits_given_up_ = false;  // the user has discarded all edits
};

}  // namespace mw::ui
