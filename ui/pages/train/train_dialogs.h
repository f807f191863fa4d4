// SPDX-License-Identifier: GPL-3.0-or-later
// The dialogs of the Train page and the actions that open them. GUI thread.
#pragma once
#include "ui/pages/train/export_dialog.h"
#include "ui/pages/train/launch_dialog.h"
#include "ui/pages/train/merge_dialog.h"
#include "ui/pages/train/tune_dialog.h"
#include "ui/session/workspace.h"

namespace mw::ui {

class TrainDialogs : public QObject {
  Q_OBJECT
 public:
  TrainDialogs(Workspace& workspace, QWidget& window);
  QStringList unfinished_work() const;
  void stop_work();
  void save_state(Session& session) const;
  void restore_state(const Session& session);

  LaunchDialog& launch;
  AttachDialog& attach;
  ExportDialog& exporter;
  MergeDialog& merge;
  TuneDialog& tune;

 private:
  void register_actions();
  template <class Dialog>
  void open_with_experiments(Dialog& dialog);
  void merge_shown();
  Workspace& workspace_;
  RunController& runs_;
};

}  // namespace mw::ui
