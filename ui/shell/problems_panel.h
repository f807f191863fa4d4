// SPDX-License-Identifier: GPL-3.0-or-later
// The Problems dock: the list, and the explanation and the fixes of the selected problem. GUI thread.
#pragma once
#include <QTableView>
#include <QWidget>

#include "ui/shell/problems_model.h"

class QLabel;
class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace mw::ui {

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

}  // namespace mw::ui
