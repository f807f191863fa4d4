// SPDX-License-Identifier: GPL-3.0-or-later
// The settings of the sweep in one row, with the fields of the form. GUI thread.
#pragma once
#include <QWidget>
#include <vector>

#include "ui/form/field.h"

class QLabel;

namespace mw::ui {

class SweepForm : public QWidget {
  Q_OBJECT
 public:
  explicit SweepForm(Document& document, QWidget* parent = nullptr);
  Field* field(const std::string& key);  // null: not shown

 private:
  struct Cell {
    Field* field;
    QLabel* caption;
  };
  void add(const std::string& key, const QString& caption, int stretch);
  void refresh();
  Document& document_;
  std::vector<Cell> cells_;
};

}  // namespace mw::ui
