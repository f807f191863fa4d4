// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/choice_fields.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QToolButton>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

ChoiceField::ChoiceField(const experiment::Parameter& parameter, QWidget* parent)
    : Field(parameter, parent), box_(new QComboBox(this)) {
  auto* row = flush_layout<QHBoxLayout>(this);
  row->addWidget(box_, 1);
  for (const auto& choice : parameter.choices) box_->addItem(qs(choice));
  box_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  watch(box_);
  connect(box_, &QComboBox::activated, this,
          [this](int index) { emit edited(ss(box_->itemText(index)), Gesture::single); });
}

void ChoiceField::show_value(const Json* set) {
  const QString text = field_text(set ? *set : parameter().fallback);
  const auto known = static_cast<int>(parameter().choices.size());
  int index = box_->findText(text);
  while (box_->count() > known && index < known) box_->removeItem(box_->count() - 1);
  if (index < 0) {  // not one of the choices: shown unchanged and reported by validation
    box_->addItem(text);
    index = box_->count() - 1;
  }
  const QSignalBlocker quiet(box_);
  box_->setCurrentIndex(index);
}

FlagField::FlagField(const experiment::Parameter& parameter, QWidget* parent)
    : Field(parameter, parent), box_(new QCheckBox(this)) {
  auto* row = flush_layout<QHBoxLayout>(this);
  row->addWidget(box_);
  row->addStretch(1);
  watch(box_);
  connect(box_, &QCheckBox::clicked, this, [this](bool on) { emit edited(on, Gesture::single); });
}

void FlagField::show_value(const Json* set) {
  const Json& v = set ? *set : parameter().fallback;
  const bool on = v.is_boolean() && v.get<bool>();
  box_->setChecked(on);
  box_->setText(!v.is_boolean() ? field_text(v) : on ? tr("on") : tr("off"));
}

ChipsField::ChipsField(const experiment::Parameter& parameter, QWidget* parent) : Field(parameter, parent) {
  auto* grid = make_layout<QGridLayout>(this, {0, 1, 0, 1}, 3);
  // Two columns if the form is wide enough.
  constexpr size_t kShort = 12;
  const bool narrow = std::all_of(parameter.choices.begin(), parameter.choices.end(),
                                  [](const std::string& c) { return c.size() <= kShort; });
  const int columns = narrow ? 2 : 1;
  int at = 0;
  for (const auto& choice : parameter.choices) {
    QToolButton* chip = chip_button(qs(choice), {}, this);
    chip->setSizePolicy(QSizePolicy::MinimumExpanding, QSizePolicy::Fixed);
    watch(chip);
    chip->setAccessibleName(qs(parameter.label + ": " + choice));
    grid->addWidget(chip, at / columns, at % columns);
    chips_.push_back(chip);
    ++at;
    connect(chip, &QToolButton::clicked, this, &ChipsField::chosen);
  }
}

void ChipsField::show_value(const Json* set) {
  const Json& v = set ? *set : parameter().fallback;
  for (QToolButton* chip : chips_) {
    const std::string name = ss(chip->text());
    chip->setChecked(v.is_array() && std::any_of(v.begin(), v.end(), [&](const Json& e) { return e == Json(name); }));
  }
}

void ChipsField::chosen() {
  Json all = Json::array();
  for (const QToolButton* chip : chips_)
    if (chip->isChecked()) all.push_back(ss(chip->text()));
  emit edited(all, Gesture::single);
}

}  // namespace mw::ui

#include "moc_choice_fields.cpp"
