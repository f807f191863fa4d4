// SPDX-License-Identifier: GPL-3.0-or-later
// Starts, pauses, stops and resumes runs. GUI thread.
#pragma once
#include "core/experiment/parameters.h"
#include "ui/session/workspace.h"

namespace mw::ui {

class RunActions : public QObject {
  Q_OBJECT
 public:
  explicit RunActions(Workspace& workspace);
  void start(RunKind kind);  // of the document; ignored while a run is in progress, unless it is launched elsewhere
  void resume(const store::RunId& run);
  void update();              // enables the actions
  RunKind next_kind() const;  // kind of run that the Run action starts

 private:
  bool is_launched(RunKind kind) const;
  experiment::Relevance relevance() const;
  void update_proof(const QString& target);
  void pause_or_resume();
  Workspace& workspace_;
  RunController& runs_;
};

}  // namespace mw::ui
