// SPDX-License-Identifier: GPL-3.0-or-later
// Collapses the docks at the bottom of the window to their tabs, by a click on the current tab or by an action. GUI
// thread.
#pragma once
#include <QIcon>
#include <QObject>
#include <optional>
#include <vector>

class QDockWidget;
class QMainWindow;
class QTabBar;

namespace mw::ui {

enum class DockState { expanded, collapsed };

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

}  // namespace mw::ui
