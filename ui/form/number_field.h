// SPDX-License-Identifier: GPL-3.0-or-later
// Editor of a number: free text (also "2e-4"), steps by arrow keys and wheel, and an optional slider.
#pragma once
#include "ui/form/form_field.h"

class QSlider;
class QToolButton;

namespace mw::ui {

class UnitEdit;

class NumberField : public FormField {
  Q_OBJECT
 public:
  NumberField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;
  void set_compact() override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void typed(const QString& text);
  void step(int direction, bool large);
  void toggle_slider(bool shown);
  void slide(int position);
  void push(double value);
  bool integer() const { return parameter().type == experiment::ParamType::integer; }

  UnitEdit* edit_;
  QToolButton* slider_button_;
  QSlider* slider_ = nullptr;
  double value_ = 0, slider_low_ = 0, slider_high_ = 1;
};

}  // namespace mw::ui
