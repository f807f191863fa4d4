// SPDX-License-Identifier: GPL-3.0-or-later
// Starts, pauses, stops and resumes runs. GUI thread.
#pragma once
#include "ui/session/workspace.h"

namespace mw::ui {

class RunActions : public QObject {
  Q_OBJECT
 public:
  explicit RunActions(Workspace& workspace);
  void start(RunKind kind);  // of the document; ignored while a run is in progress
  void resume(const store::RunId& run);
  void update();  // enables the actions

 private:
  RunKind next_kind() const;  // kind of run that the Run action starts
  void pause_or_continue();
  Workspace& workspace_;
  RunController& runs_;
};

}  // namespace mw::ui
