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

enum class Fold { open, folded };

class BottomFold : public QObject {
  Q_OBJECT
 public:
  BottomFold(QMainWindow& window, std::vector<QDockWidget*> docks);  // already tabbed
  Fold state() const { return state_; }
  std::optional<Fold> chosen() const { return chosen_; }  // last choice of the user
  int height() const;                                     // when open, including the tabs; pixels
  void set(Fold state);
  void restore(std::optional<Fold> chosen, int height);  // without a choice: folded
  void choose(Fold state);
  void toggle();                                          // counts as a choice of the user
  void offer();                                           // opens unless the user has chosen
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
  Fold state_ = Fold::open;
  std::optional<Fold> chosen_;
};

}  // namespace mw::ui
