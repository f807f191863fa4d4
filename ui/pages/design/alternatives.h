// SPDX-License-Identifier: GPL-3.0-or-later
// Searches all plans of the document that fit on a worker thread and shows them as a table or as memory by time; a
// plan can be applied. The plans belong to the searched document and to the result of applying one. They are disabled
// while the document differs and removed when it is replaced. GUI thread.
#pragma once
#include <QSortFilterProxyModel>

#include "core/plan/calibration/plan_context.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/experiment/search_experiment.h"
#include "ui/charts/chart.h"
#include "ui/session/background_task.h"
#include "ui/session/document.h"
#include "ui/theme/table_model.h"

class QComboBox;
class QProgressBar;
class QStackedWidget;
class QTableView;

namespace mw::ui {

// The plans that a search found as rows: best first, sortable by every column through a proxy.
class CandidatesModel : public TableModel<plan::Candidate> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::CandidatesModel)
 public:
  enum Column { pareto, target, mesh, request, step, usd, memory, settings };
  CandidatesModel();
  void show(const std::shared_ptr<const plan::ExperimentSearch>& found);  // may be null
  bool is_column_used(int column) const;                                  // false: it has the same value in every row
  const QString& shared() const { return shared_; }  // settings that all rows have: "remat none, full logits"

 private:
  using Settings = std::vector<std::pair<QString, QString>>;
  Settings all_settings(const plan::Candidate& c) const;
  QVariant cell(const plan::Candidate& c, int column, int role) const;
  plan::Work work_ = plan::Work::train;
  std::vector<size_t> differing_;  // indices of all_settings()
  QString shared_;
};

class Alternatives : public QWidget {
  Q_OBJECT
 public:
  Alternatives(Document& document, plan::LoadContext context, QWidget* parent = nullptr);
  void search();  // the document as it is now
  void cancel() { task_.abandon(); }
  void clear();                  // discards the plans
  void set_searchable(bool on);  // off: this machine is measured, not planned
  void restyle() { draw(); }
  bool is_searching() const { return task_.is_busy(); }
  bool is_outdated() const { return outdated_; }  // found for another state of the document
  CandidatesModel& model() { return model_; }
  QTableView& table() { return *table_; }
  void apply(int row);  // applies a row of the model in one undo step; does nothing if outdated

 signals:
  void problem(const mw::Problem& problem);

 private:
  using SearchPtr = std::shared_ptr<const plan::ExperimentSearch>;
  void build();
  void show_progress();
  void take_result();
  void show_found();
  void document_changed();
  void show_state();
  QString found_text() const;  // "240 of 800 fit; the best 100 are listed"
  void draw();
  Document& document_;
  plan::LoadContext context_;
  SearchPtr found_;
  experiment::Experiment searched_;  // the latest search
  std::vector<experiment::Experiment>
      found_for_;  // found_ is valid for these: the searched document and results of apply()
  bool outdated_ = false;
  CandidatesModel model_;
  QSortFilterProxyModel sorted_;
  ChartLink by_memory_;
  QStackedWidget* views_;
  QTableView* table_;
  Chart* chart_;
  QComboBox *rank_, *targets_;
  QPushButton *search_, *apply_, *chart_button_;
  QLabel* status_;
  QProgressBar* progress_;
  BackgroundTask<SearchPtr> task_{"SEARCH"};
};

}  // namespace mw::ui
