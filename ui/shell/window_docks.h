// SPDX-License-Identifier: GPL-3.0-or-later
// The docks around the pages: the experiment panel at the left; problems, log and jobs at the bottom. GUI thread.
#pragma once
#include <QObject>
#include <array>

#include "ui/session/workspace.h"

class QDockWidget;
class QMainWindow;

namespace mw::ui {

class BottomDocks;
class ExperimentPanel;
class JobsPanel;
class LogPanel;
class ProblemsModel;
class ProblemsPanel;
enum class PanelState;

class WindowDocks : public QObject {
  Q_OBJECT
 public:
  WindowDocks(QMainWindow& window, Workspace& workspace, ProblemsModel& problems);
  void register_actions();
  void show_page(Page page);               // as the experiment panel was on this page
  void set_panel_state(PanelState state);  // on the current page, which remembers it
  void raise(const QString& dock);         // "problems", "log", "jobs" or "experiment"
  void show_problem_counts(int errors, int warnings);
  void save_state(Session& session) const;
  void restore_state(const Session& session);
  QDockWidget& experiment_dock() { return *experiment_dock_; }

  ExperimentPanel& panel;
  ProblemsPanel& problems;
  LogPanel& log;
  JobsPanel& jobs;
  BottomDocks* bottom = nullptr;

 private:
  QDockWidget* add(const QString& id, const QString& title, QWidget& content, Qt::DockWidgetArea area);
  void toggle_panel();
  QMainWindow& window_;
  Workspace& workspace_;
  std::array<PanelState, kPages> panel_states_{};  // of each page
  int panel_width_ = 300;                          // when open; pixels
  QDockWidget *experiment_dock_, *problems_dock_, *log_dock_, *jobs_dock_;
};

}  // namespace mw::ui
