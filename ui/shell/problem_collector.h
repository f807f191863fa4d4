// SPDX-License-Identifier: GPL-3.0-or-later
// Collects the problems of document, prediction, checker and displayed run in the Problems dock, and tells the status
// strip and the pages how many errors prevent a prediction. GUI thread.
#pragma once
#include <QObject>
#include <QTimer>

#include "ui/session/workspace.h"

namespace mw::ui {

class PageStack;
class ProblemsModel;
class StatusStrip;
class WindowDocks;

class ProblemCollector : public QObject {
  Q_OBJECT
 public:
  ProblemCollector(Workspace& workspace, ProblemsModel& problems, WindowDocks& docks, StatusStrip& strip,
                   const PageStack& pages);

 private:
  void show_predicted();
  void offer_memory_fixes();
  void show_counts();
  void show_errors();
  Workspace& workspace_;
  ProblemsModel& problems_;
  WindowDocks& docks_;
  StatusStrip& strip_;
  const std::vector<WindowPage*>& pages_;
  store::RunId offered_fixes_of_;  // run
  QTimer withdraw_;                // of the bottom docks, some time after the last problem was solved
};

}  // namespace mw::ui
