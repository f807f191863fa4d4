// SPDX-License-Identifier: GPL-3.0-or-later
// The Problems dock: the list, and beside it why the chosen one matters and what can be done about it.
#pragma once
#include <QTableView>
#include <QWidget>

#include "ui/shell/problems_model.h"

class QLabel;
class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace mw::ui {

class ProblemsTable : public QTableView {
  Q_OBJECT
 public:
  explicit ProblemsTable(ProblemsModel& model, QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

class ProblemsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit ProblemsPanel(ProblemsModel& model, QWidget* parent = nullptr);
  ProblemsTable& table() { return *table_; }
  void choose(int row);
  // The first fix of the chosen problem, or of the first that has one; false: there is none.
  bool fix_first();
  const std::vector<QPushButton*>& fix_buttons() const { return buttons_; }
  QString why() const;

 signals:
  void chosen(const mw::Problem& problem);  // click or Enter
  void fix_wanted(const mw::lint::Fix& fix, const QString& id);

 private:
  void show_details();
  ProblemsModel& model_;
  ProblemsTable* table_;
  QScrollArea* details_;
  QLabel *title_, *why_, *evidence_;
  QVBoxLayout* fixes_;
  std::vector<QPushButton*> buttons_;
  std::string kept_id_;  // of the chosen problem: chosen again where it is after the list was made anew
};

}  // namespace mw::ui
