// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/axis_chip.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

AxisChip::AxisChip(QWidget* canvas, Editing editing) : QAbstractButton(canvas), editing_(editing) {
  setFocusPolicy(Qt::StrongFocus);
  if (editing_ == Editing::allowed) setCursor(Qt::OpenHandCursor);
  setAttribute(Qt::WA_Hover);
}

void AxisChip::show_axis(const QString& axis, int size, const QString& place, const QColor& color) {
  const QString label = axis % u' ' % QString::number(size);
  if (axis == axis_ && color == color_ && label == text() && place == place_) return;
  axis_ = axis;
  color_ = color;
  place_ = place;
  setText(label);
  setAccessibleName(tr("Mesh axis %1, %2").arg(axis, devices_text(size)));
  update();
  if (editing_ == Editing::none) {
    setAccessibleDescription(place);
    setToolTip(place);
    return;
  }
  const QString how = tr("Up and Down change the size; Space picks up the axis, Enter drops it, Escape cancels");
  setAccessibleDescription(place % u". "_s % how);
  setToolTip(place % u'\n' %
             tr("Drag along the row or use the wheel to change the size; drag onto a side of the grid or a tensor "
                "dimension to use the axis; Space picks it up"));
}

void AxisChip::show_state(bool previewed, bool refused) {
  if (previewed == previewed_ && refused == refused_) return;
  previewed_ = previewed;
  refused_ = refused;
  update();
}

QSize AxisChip::sizeHint() const {
  const QFontMetrics metrics(font());
  return {metrics.horizontalAdvance(text()) + 34, metrics.height() + 10};
}

void AxisChip::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter p(this);
  p.setRenderHint(QPainter::Antialiasing);
  const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
  const QColor edge = refused_ ? t.bad : hasFocus() ? t.accent : previewed_ ? color_ : t.line;
  p.setPen(QPen(edge, hasFocus() || refused_ || previewed_ ? 2 : 1, previewed_ ? Qt::DashLine : Qt::SolidLine));
  p.setBrush(underMouse() || isDown() ? t.hover : t.panel);
  p.drawRoundedRect(box, box.height() / 2, box.height() / 2);
  p.setPen(Qt::NoPen);
  p.setBrush(color_);
  p.drawEllipse(QPointF(box.left() + 13, box.center().y()), 4.5, 4.5);
  p.setPen(refused_ ? t.bad : t.text);
  p.drawText(box.adjusted(22, 0, -8, 0), Qt::AlignVCenter | Qt::AlignLeft, text());
}

void AxisChip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  setFocus(Qt::MouseFocusReason);
  if (editing_ == Editing::none) return;
  is_dragged_ = true;
  setCursor(Qt::ClosedHandCursor);
  emit drag_started(mapToParent(event->position().toPoint()));
}

void AxisChip::mouseMoveEvent(QMouseEvent* event) {
  if (is_dragged_) emit dragged(mapToParent(event->position().toPoint()));
}

void AxisChip::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !is_dragged_) return;
  is_dragged_ = false;
  setCursor(Qt::OpenHandCursor);
  emit drag_ended();
}

void AxisChip::wheelEvent(QWheelEvent* event) {
  if (editing_ == Editing::none) return event->ignore();
  const int by = event->angleDelta().y();
  if (by != 0) emit wheel_stepped(by > 0 ? 1 : -1);
  event->accept();
}

void AxisChip::keyPressEvent(QKeyEvent* event) {
  if (editing_ == Editing::none) return QAbstractButton::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return emit stepped(1);
    case Qt::Key_Down:
    case Qt::Key_Minus:
      return emit stepped(-1);
    case Qt::Key_Left:
      return emit place_stepped(-1);
    case Qt::Key_Right:
      return emit place_stepped(1);
    case Qt::Key_Space:
      return emit move_toggled();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return emit confirmed();
    case Qt::Key_Escape:
      is_dragged_ = false;
      return emit cancelled();
    case Qt::Key_Delete:
    case Qt::Key_Backspace:
      return emit removed();
    default:
      QAbstractButton::keyPressEvent(event);
  }
}

bool AxisChip::event(QEvent* event) {
  if (event->type() == QEvent::FocusOut && !is_dragged_) emit focus_lost();
  const bool handled = QAbstractButton::event(event);
  constexpr QEvent::Type kOfAttention[] = {QEvent::Enter, QEvent::Leave, QEvent::FocusIn, QEvent::FocusOut};
  if (std::count(std::begin(kOfAttention), std::end(kOfAttention), event->type()) > 0) emit attention_changed();
  return handled;
}

}  // namespace mw::ui

#include "moc_axis_chip.cpp"
