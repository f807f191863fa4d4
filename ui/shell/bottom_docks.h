// SPDX-License-Identifier: GPL-3.0-or-later
// The docks at the bottom of the window, and the Log and Jobs panels in them. GUI thread.
#pragma once
#include <QPlainTextEdit>
#include <optional>

#include "ui/session/action_registry.h"
#include "ui/session/run_controller.h"
#include "ui/theme/widgets.h"

class QDockWidget;
class QMainWindow;
class QProgressBar;
class QTabBar;

namespace mw::ui {

enum class DockState { expanded, collapsed };

// Collapses the docks to their tabs, by a click on the current tab or by an action.
class BottomDocks : public QObject {
  Q_OBJECT
 public:
  BottomDocks(QMainWindow& window, std::vector<QDockWidget*> docks);  // already tabbed
  DockState state() const { return state_; }
  std::optional<DockState> chosen() const { return chosen_; }  // last choice of the user
  int height() const;                                          // when expanded, including the tabs; pixels
  void set(DockState state);
  void restore(std::optional<DockState> chosen, int height);  // without a choice: collapsed
  void choose(DockState state);
  void toggle();                                          // counts as a choice of the user
  void offer();                                           // expands unless the user has chosen
  void withdraw();                                        // back to the state before offer() or set()
  void mark(const QDockWidget* dock, const QIcon& icon);  // icon of its tab; null: none

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void watch(QTabBar* bar);
  std::vector<QTabBar*> bars() const;
  void put_marks();
  QMainWindow& window_;
  std::vector<QDockWidget*> docks_;
  std::vector<QIcon> marks_;  // of each dock
  int height_;
  DockState state_ = DockState::expanded;
  std::optional<DockState> chosen_;
};

// The log of the displayed run, oldest line first; follows the newest line unless the user has scrolled.
class LogPanel : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit LogPanel(QWidget* parent = nullptr);
  void show_run(RunPtr run);
  void grow();

 private:
  RunPtr run_;
  size_t shown_ = 0;  // lines shown so far, including dropped ones
};

class JobsPanel : public QWidget {
  Q_OBJECT
 public:
  JobsPanel(RunController& runs, ActionRegistry& actions, QWidget* parent = nullptr);
  void show_frame();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  RunController& runs_;
  QLabel *idle_, *name_, *steps_, *eta_;
  QProgressBar* bar_;
  QPushButton *pause_, *stop_, *show_;
  QWidget* row_;
};

}  // namespace mw::ui
