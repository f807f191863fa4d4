// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/number_field.h"

#include <QLineEdit>
#include <QPainter>
#include <QSlider>
#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr int kSliderSteps = 400;

// The next round number after v: 1, 2 or 5 times a power of ten for reals, a power of two for large integers.
double rounded_step(double v, int direction, bool integer) {
  if (integer) {
    const double stride = std::abs(v) >= 100 ? std::pow(10.0, std::floor(std::log10(std::abs(v)))) / 10 : 1;
    return v + direction * stride;
  }
  if (v <= 0) return direction > 0 ? 0.01 : 0;
  const double decade = std::pow(10.0, std::floor(std::log10(v * (direction > 0 ? 1.0000001 : 0.9999999))));
  const double m = v / decade;
  if (direction > 0) return decade * (m < 1.9999 ? 2 : m < 4.9999 ? 5 : 10);
  return decade * (m > 5.0001 ? 5 : m > 2.0001 ? 2 : m > 1.0001 ? 1 : 0.5);
}

}  // namespace

// Paints the unit at its end where the text leaves room, so that a narrow form hides the unit and not the number.
class UnitEdit : public QLineEdit {
 public:
  UnitEdit(const QString& unit, QWidget* parent) : QLineEdit(parent), unit_(unit) {}
  void set_unit(const QString& unit) { unit_ = unit; }

 protected:
  void paintEvent(QPaintEvent* event) override {
    QLineEdit::paintEvent(event);
    constexpr int kGap = 7;
    const int used = fontMetrics().horizontalAdvance(text().isEmpty() ? placeholderText() : text());
    if (used + fontMetrics().horizontalAdvance(unit_) + 3 * kGap > width()) return;
    QPainter painter(this);
    painter.setPen(theme().faint);
    painter.drawText(rect().adjusted(kGap, 0, -kGap, 0), Qt::AlignRight | Qt::AlignVCenter, unit_);
  }

 private:
  QString unit_;
};

NumberField::NumberField(const experiment::Parameter& parameter, QWidget* parent)
    : FormField(parameter, parent),
      edit_(new UnitEdit(qs(parameter.unit), this)),
      slider_button_(flat_button(Glyph::slider, tr("Slider for %1").arg(qs(parameter.label)), this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 1);
  auto* row = new QHBoxLayout;
  row->setSpacing(3);
  row->addWidget(edit_, 1);
  row->addWidget(slider_button_);
  column->addLayout(row);
  watch(edit_);
  edit_->setPlaceholderText(field_text(parameter.fallback));
  slider_button_->setCheckable(true);
  slider_button_->setToolTip(tr("Show a slider around the current value"));
  connect(edit_, &QLineEdit::textEdited, this, &NumberField::typed);
  connect(slider_button_, &QToolButton::toggled, this, &NumberField::toggle_slider);
}

void NumberField::set_compact() {
  edit_->set_unit({});
  slider_button_->hide();
}

void NumberField::show_value(const Json* set) {
  const Json& shown = set ? *set : parameter().fallback;
  value_ = shown.is_number() ? shown.get<double>() : value_;
  const QString text = set ? field_text(*set) : QString();
  // Keeps typed text like "0.50" while it means the same value.
  if (edit_->hasFocus() && edit_->isModified()) {
    bool number = false;
    const double typed_value = edit_->text().trimmed().toDouble(&number);
    if (set && ((number && set->is_number() && set->get<double>() == typed_value) || edit_->text() == text)) return;
    if (!set && edit_->text().isEmpty()) return;
  }
  if (edit_->text() != text) edit_->setText(text);
}

void NumberField::typed(const QString& text) {
  const QString plain = text.trimmed();
  if (plain.isEmpty()) {
    emit cleared();
    return;
  }
  bool number = false;
  const double v = plain.toDouble(&number);
  if (!number || !std::isfinite(v))
    emit edited(ss(text), Gesture::continuing);  // kept as typed and reported by validation
  else if (integer() && std::floor(v) == v && std::abs(v) < 9e15)
    emit edited(static_cast<long long>(v), Gesture::continuing);
  else
    emit edited(v, Gesture::continuing);
}

void NumberField::push(double v) {
  v = std::clamp(v, parameter().min.value_or(v), parameter().max.value_or(v));
  edit_->setModified(false);
  if (integer())
    emit edited(std::llround(v), Gesture::continuing);
  else
    emit edited(std::stod(number_text(v, 6)), Gesture::continuing);  // avoids 0.30000000000000004 in the document
}

void NumberField::step(int direction, bool large) {
  double v = value_;
  for (int i = 0; i < (large ? 10 : 1); ++i) v = rounded_step(v, direction, integer());
  push(v);
}

bool NumberField::eventFilter(QObject* watched, QEvent* event) {
  if (watched == edit_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const int direction = key->key() == Qt::Key_Up || key->key() == Qt::Key_PageUp       ? 1
                          : key->key() == Qt::Key_Down || key->key() == Qt::Key_PageDown ? -1
                                                                                         : 0;
    if (direction != 0) {
      step(direction, key->key() == Qt::Key_PageUp || key->key() == Qt::Key_PageDown);
      return true;
    }
  }
  if (watched == edit_ && event->type() == QEvent::Wheel && edit_->hasFocus()) {
    step(static_cast<QWheelEvent*>(event)->angleDelta().y() > 0 ? 1 : -1, false);
    return true;
  }
  return FormField::eventFilter(watched, event);
}

void NumberField::toggle_slider(bool shown) {
  if (!shown) {
    delete slider_;
    slider_ = nullptr;
    emit editing_finished();
    return;
  }
  const double at = value_;
  const double low = parameter().min.value_or(0), high = parameter().max.value_or(1e12);
  slider_low_ = at > 0 ? std::max(low, at / 16) : low;
  slider_high_ = at > 0 ? std::min(high, at * 16) : std::min(high, std::max(low + 1, 1.0));
  if (high <= 1) slider_low_ = low, slider_high_ = high;
  slider_ = new QSlider(Qt::Horizontal, this);
  slider_->setRange(0, kSliderSteps);
  slider_->setAccessibleName(tr("%1 slider").arg(qs(parameter().label)));
  slider_->setToolTip(
      tr("Drag to a value from %1 to %2").arg(qs(number_text(slider_low_)), qs(number_text(slider_high_))));
  static_cast<QVBoxLayout*>(layout())->addWidget(slider_);
  const bool logarithmic = slider_low_ > 0;
  const double share = logarithmic ? std::log(at / slider_low_) / std::log(slider_high_ / slider_low_)
                                   : (at - slider_low_) / (slider_high_ - slider_low_);
  slider_->setValue(static_cast<int>(std::lround(share * kSliderSteps)));
  connect(slider_, &QSlider::valueChanged, this, &NumberField::slide);
  connect(slider_, &QSlider::sliderReleased, this, &FormField::editing_finished);
  slider_->setFocus();
}

void NumberField::slide(int position) {
  const double share = static_cast<double>(position) / kSliderSteps;
  double v = slider_low_ > 0 ? slider_low_ * std::pow(slider_high_ / slider_low_, share)
                             : slider_low_ + share * (slider_high_ - slider_low_);
  if (!integer()) v = std::stod(number_text(v, 3));
  push(v);
}

}  // namespace mw::ui

#include "moc_number_field.cpp"
