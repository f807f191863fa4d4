// SPDX-License-Identifier: GPL-3.0-or-later
// Editors for closed sets of values: one of several, a boolean, any of several.
#pragma once
#include "ui/form/field.h"

class QCheckBox;
class QComboBox;
class QToolButton;

namespace mw::ui {

class ChoiceField : public Field {
  Q_OBJECT
 public:
  ChoiceField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;

 private:
  QComboBox* box_;
};

class FlagField : public Field {
  Q_OBJECT
 public:
  FlagField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;

 private:
  QCheckBox* box_;
};

class ChipsField : public Field {
  Q_OBJECT
 public:
  ChipsField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;

 private:
  void chosen();
  std::vector<QToolButton*> chips_;
};

}  // namespace mw::ui
