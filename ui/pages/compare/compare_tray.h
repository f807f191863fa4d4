// SPDX-License-Identifier: GPL-3.0-or-later
// The compared runs as chips that can be reordered by dragging; the first is the baseline. Accepts dropped runs and
// result files. GUI thread.
#pragma once
#include <deque>

#include "core/compare/comparison.h"
#include "core/plan/calibration/plan_context.h"
#include "ui/session/background_task.h"
#include "ui/theme/widgets.h"

class QMenu;
class QTabBar;

namespace mw::ui {

// Reads runs and result files for the tray in parallel and delivers them in the order of the requests.
class ComparedReader : public QObject {
  Q_OBJECT
 public:
  struct Folders {
    std::filesystem::path runs, results;  // results: shipped results
  };
  ComparedReader(Folders folders, plan::LoadContext context)
      : folders_(std::move(folders)), context_(std::move(context)) {}
  void read_run(const store::RunId& run);
  void read_file(const std::filesystem::path& file);  // reads every set in the file
  void forget() { tasks_.clear(); }                   // drops the tasks in progress with their results
  int pending() const { return static_cast<int>(tasks_.size()); }
  const Folders& folders() const { return folders_; }
  const plan::LoadContext& context() const { return context_; }

 signals:
  void read(std::vector<compare::ComparedRun>& runs);  // moves from `runs`
  void problem(const mw::Problem& problem);
  void settled();  // emitted after each of the above

 private:
  using Task = BackgroundTask<std::vector<compare::ComparedRun>>;
  void start(Task::Work work);
  void deliver();
  Folders folders_;
  plan::LoadContext context_;
  std::deque<std::unique_ptr<Task>> tasks_;  // in the order of the requests
};

// Unique names of at most 26 characters, for chips and legends. Longer ones are elided in the middle; if two become
// equal, at the end or the beginning.
QStringList short_names(const QStringList& names);
QStringList short_names(const std::vector<compare::ComparedRun>& runs);

class CompareTray : public QFrame {
  Q_OBJECT
 public:
  explicit CompareTray(QWidget* parent = nullptr);
  void show_runs(const std::vector<compare::ComparedRun>& runs, int pending);
  void set_emphasised(int at);
  void set_menu(QMenu* menu);  // of the (+) button
  QTabBar& chips() { return *chips_; }

 signals:
  void hovered(int at);  // -1: left
  void move_wanted(int from, int to);
  void remove_wanted(int at);
  void open_wanted(int at);
  void replay_wanted(int at);
  void runs_dropped(const QStringList& runs);
  void files_dropped(const QStringList& files);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;  // of the chips
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void show_chip(int at, const compare::ComparedRun& run, const QString& name, const QString& short_name);
  void add_chip();
  bool press(int key, Qt::KeyboardModifiers modifiers);
  void open_menu(int at, QPoint place);
  QTabBar* chips_;
  QLabel* hint_;
  QToolButton* add_;
  struct Offers {
    bool open, replay;
  };
  std::vector<Offers> offers_;  // of the menus, by chip
};

}  // namespace mw::ui
