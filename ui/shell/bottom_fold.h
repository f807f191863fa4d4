// SPDX-License-Identifier: GPL-3.0-or-later
// Folds the docks at the bottom to a line of tabs, by a click on the current tab or by the action. GUI thread.
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
  BottomFold(QMainWindow& window, std::vector<QDockWidget*> docks);  // tabbed already; open
  Fold state() const { return state_; }
  std::optional<Fold> chosen() const { return chosen_; }  // by the user, last
  int height() const;                                     // when open, tabs included; pixels
  void set(Fold state);
  void restore(std::optional<Fold> chosen, int height);  // folded until the user or offer() opens it
  void choose(Fold state);
  void toggle();                                          // is a choice
  void offer();                                           // opens, unless the user chose otherwise before
  void mark(const QDockWidget* dock, const QIcon& icon);  // on its tab; a null one: none

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
