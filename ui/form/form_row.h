// SPDX-License-Identifier: GPL-3.0-or-later
// One row of the form: label, editor, reset button and, below them, a problem with the value.
#pragma once
#include <QWidget>

#include "ui/form/field.h"

class QLabel;
class QToolButton;

namespace mw::ui {

class FormRow : public QWidget {
  Q_OBJECT
 public:
  FormRow(const experiment::Parameter& parameter, Document& document, QWidget* parent);
  void refresh();
  bool matches(const QString& words) const;
  bool covers(const std::string& place) const;  // whether the place is the key of this row or below it
  Field* field() { return field_; }
  bool is_set() const { return set_; }
  bool has_problem() const { return problem_shown_; }
  // Whether the setting has an effect in the experiment.
  bool is_concerned() const { return concerned_; }
  void set_concerned(bool concerned) { concerned_ = concerned; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_label();
  Document& document_;
  Field* field_;
  QLabel *label_, *problem_;
  QToolButton* reset_;
  bool set_ = false, problem_shown_ = false, concerned_ = true;
};

}  // namespace mw::ui
