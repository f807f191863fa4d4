// SPDX-License-Identifier: GPL-3.0-or-later
// The compared runs as chips that can be reordered by dragging; the first is the baseline. Accepts dropped runs and
// result files. GUI thread.
#pragma once
#include <QFrame>
#include <vector>

#include "core/compare/comparison.h"

class QHBoxLayout;
class QLabel;
class QMenu;
class QToolButton;

namespace mw::ui {

// Unique names of at most 26 characters, for chips and legends. Longer ones are elided in the middle; if two become
// equal, at the end or the beginning.
QStringList short_names(const QStringList& names);
QStringList short_names(const std::vector<compare::ComparedRun>& runs);

class CompareTray;

class TrayChip : public QFrame {
  Q_OBJECT
 public:
  TrayChip(const compare::ComparedRun& run, const QString& short_name, int at, CompareTray& tray);
  int at() const { return at_; }
  void set_emphasised(bool emphasised);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  CompareTray& tray_;
  int at_;
  formats::Provenance provenance_;
  bool emphasised_ = false, stored_, replayable_;
  QPoint pressed_at_;
};

class CompareTray : public QFrame {
  Q_OBJECT
 public:
  explicit CompareTray(QWidget* parent = nullptr);
  void show_runs(const std::vector<compare::ComparedRun>& runs, int pending);
  void set_emphasised(int at);
  void set_menu(QMenu* menu);  // of the (+) button
  std::vector<TrayChip*> chips() const { return chips_; }

 signals:
  void hovered(int at);  // -1: left
  void move_wanted(int from, int to);
  void remove_wanted(int at);
  void open_wanted(int at);
  void replay_wanted(int at);
  void runs_dropped(const QStringList& runs);
  void files_dropped(const QStringList& files);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  int place_at(double x) const;  // index of a chip dropped at x
  std::vector<TrayChip*> chips_;
  QHBoxLayout* row_;
  QLabel* hint_;
  QToolButton* add_;
  bool dragging_ = false;
};

}  // namespace mw::ui
