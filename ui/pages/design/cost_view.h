// SPDX-License-Identifier: GPL-3.0-or-later
// Total cost of the design: training and serving by price class, break-even with the pinned design, and what moves the
// total most. GUI thread.
#pragma once
#include <QWidget>
#include <array>

#include "core/views/design_view.h"
#include "ui/charts/chart.h"
#include "ui/theme/table_model.h"

class QLabel;
class QStackedWidget;
class QTableView;

namespace mw::ui {

// One part of the cost by price class.
struct CostRow {
  QString name{}, tooltip{};
  std::array<QString, 3> texts{};  // by plan::CostClass; empty: no price
};
class CostModel : public TableModel<CostRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::CostModel)
 public:
  enum Row { training, serving, starting, preempted, total, servers, per_million };
  CostModel();
  void show(const plan::CostPlan& cost);
};

class CostView : public QWidget {
  Q_OBJECT
 public:
  explicit CostView(QWidget* parent = nullptr);
  void show_cost(const plan::CostPlan* cost, const plan::CostPlan* pinned);  // null: none
  CostModel& model() { return model_; }
  Chart& chart() { return *chart_; }
  QString load() const;
  QString break_even() const;  // empty: no pinned design with a cost

 signals:
  void setting_wanted(const QString& key);

 private:
  void show_swings(const plan::CostPlan& cost);
  CostModel model_;
  ChartLink by_input_;
  QStackedWidget* stack_;
  QLabel *load_, *break_even_;
  QTableView* table_;
  Chart* chart_;
};

}  // namespace mw::ui
