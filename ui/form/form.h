// SPDX-License-Identifier: GPL-3.0-or-later
// The experiment form: a search box and one row per parameter in the groups of the parameter table. Advanced parameters
// are folded. GUI thread.
#pragma once
#include <QWidget>
#include <vector>

#include "ui/form/form_row.h"

class QLineEdit;
class QScrollArea;
class QToolButton;

namespace mw::ui {

class Form : public QWidget {
  Q_OBJECT
 public:
  Form(Document& document, QWidget* parent = nullptr);
  // Unfolds, scrolls to and focuses the field at the place of a problem. Returns false if there is none.
  bool focus_key(const std::string& key);
  FormRow* row(const std::string& key);
  QLineEdit* search() { return search_; }

 private:
  struct Section {
    QToolButton *header = nullptr, *more = nullptr;
    std::vector<FormRow*> basic, advanced;
  };
  void build(QWidget* body);
  void refresh();
  void arrange();  // updates the visibility of rows
  Document& document_;
  QLineEdit* search_;
  QScrollArea* scroll_;
  std::vector<Section> sections_;
};

}  // namespace mw::ui
