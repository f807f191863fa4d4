// SPDX-License-Identifier: GPL-3.0-or-later
// The Problems dock: the list, and the explanation and the fixes of the selected problem. GUI thread.
#pragma once
#include <QTableView>
#include <QTimer>
#include <initializer_list>
#include <map>

#include "core/plan/document/diagnostics.h"
#include "ui/session/workspace.h"
#include "ui/theme/table_model.h"
#include "ui/theme/widgets.h"

class QScrollArea;

namespace mw::ui {

// All problems by source: document, prediction, files, runs. Errors come first.
class ProblemsModel : public TableModel<plan::Diagnostic> {
  Q_OBJECT
 public:
  enum Column { severity, place, message, fix, apply };
  ProblemsModel();
  void set_diagnostics(ProblemSource source, std::vector<plan::Diagnostic> diagnostics);
  void set(ProblemSource source, const std::vector<Problem>& problems);
  void clear(ProblemSource source) { set(source, std::vector<Problem>{}); }
  const Problem& problem(int at) const { return row(at).problem; }
  int count(Severity of) const;
  int count(Severity of, std::initializer_list<ProblemSource> from) const;

 signals:
  void counted();

 private:
  std::map<ProblemSource, std::vector<plan::Diagnostic>> by_source_;
};

class ProblemsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit ProblemsPanel(ProblemsModel& model, QWidget* parent = nullptr);
  QTableView& table() { return *table_; }
  void choose(int row);
  // Applies the first fix of the selected problem, otherwise of the first problem that has one; false: none.
  bool fix_first();
  const std::vector<QPushButton*>& fix_buttons() const { return buttons_; }
  QString why() const;

 signals:
  void chosen(const mw::Problem& problem);  // click or Enter
  void fix_wanted(const mw::lint::Fix& fix, const QString& id);

 private:
  void build_table();
  void add_fix_buttons();
  void show_details();
  ProblemsModel& model_;
  QTableView* table_;
  QScrollArea* details_;
  QLabel *title_, *why_, *evidence_;
  QVBoxLayout* fixes_;
  std::vector<QPushButton*> buttons_;
  std::string kept_id_;  // id of the selected problem, which is selected again after a reset of the model
};

class PageStack;
class ProblemsModel;
class StatusStrip;
class WindowDocks;

// Collects the problems of document, prediction, checker and displayed run in the dock, and tells the status strip and
// the pages how many errors prevent a prediction.
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
  QTimer predicted_;               // problems of the latest plan, with the next turn of the event loop
};

}  // namespace mw::ui
