// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_gestures.h"

#include <QKeyEvent>
#include <algorithm>
#include <cmath>

namespace mw::ui {

bool ChartGestures::handle(QEvent& event) {
  switch (event.type()) {
    case QEvent::MouseMove:
      move(static_cast<QMouseEvent&>(event));
      return true;
    case QEvent::MouseButtonPress:
      press(static_cast<QMouseEvent&>(event));
      return true;
    case QEvent::MouseButtonRelease:
      release(static_cast<QMouseEvent&>(event));
      return true;
    case QEvent::MouseButtonDblClick:
      dragging_ = false;
      show_newest();
      return true;
    case QEvent::Wheel:
      turn(static_cast<QWheelEvent&>(event));
      return true;
    case QEvent::KeyPress:
      return axes_.content.options.rows ? press_row_key(static_cast<QKeyEvent&>(event))
                                        : press_key(static_cast<QKeyEvent&>(event));
    case QEvent::Leave:
      link_.set_cursor(std::nullopt);
      return false;
    default:
      return false;
  }
}

void ChartGestures::show_newest() {
  link_.set_playhead(std::nullopt);
  link_.set_following(true);
}

void ChartGestures::move(const QMouseEvent& event) {
  const QPointF at = event.position();
  const QRectF area = axes_.area();
  const bool rows = axes_.content.options.rows;
  if (dragging_ && !rows) {
    if (std::abs(at.x() - pressed_at_.x()) > 3) moved_ = true;
    if (moved_) {
      const double by = (pressed_at_.x() - at.x()) / area.width() * pressed_range_.size();
      link_.show_range({pressed_range_.low + by, pressed_range_.high + by});
    }
  }
  const bool inside = area.adjusted(rows ? -axes_.left_margin() : -1, 0, 1, 0).contains(at);
  link_.set_cursor(inside && !axes_.content.empty() ? std::optional(axes_.x_at(at)) : std::nullopt);
}

void ChartGestures::press(const QMouseEvent& event) {
  if (event.button() != Qt::LeftButton) return;
  dragging_ = axes_.area().contains(event.position());
  moved_ = false;
  pressed_at_ = event.position();
  pressed_range_ = link_.range();
}

void ChartGestures::release(const QMouseEvent& event) {
  if (dragging_ && !moved_ && event.button() == Qt::LeftButton && !axes_.content.empty())
    link_.set_playhead(axes_.x_at(event.position()));
  dragging_ = false;
}

void ChartGestures::turn(QWheelEvent& event) {
  if (axes_.content.options.rows) return event.ignore();
  if (!axes_.area().contains(event.position()) || axes_.content.empty()) return;
  if (std::abs(event.angleDelta().x()) > std::abs(event.angleDelta().y()))
    link_.pan(-event.angleDelta().x() / 1200.0);
  else
    link_.zoom(std::pow(0.8, event.angleDelta().y() / 120.0), axes_.x_at(event.position()));
  event.accept();
}

bool ChartGestures::press_key(const QKeyEvent& event) {
  const AxisRange r = link_.range();
  const int far = event.modifiers() & Qt::ShiftModifier ? 10 : 1;
  const double at = link_.playhead().value_or(std::min(r.high, link_.data().high));
  const double middle = link_.playhead().value_or((r.low + r.high) / 2);
  switch (event.key()) {
    case Qt::Key_Left:
      return link_.set_playhead(link_.x_beside(at, -far)), true;
    case Qt::Key_Right:
      return link_.set_playhead(link_.x_beside(at, far)), true;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return link_.zoom(0.7, middle), true;
    case Qt::Key_Minus:
      return link_.zoom(1 / 0.7, middle), true;
    case Qt::Key_PageUp:
      return link_.pan(-0.5), true;
    case Qt::Key_PageDown:
      return link_.pan(0.5), true;
    case Qt::Key_Home:
      return link_.set_playhead(link_.data().low), true;
    case Qt::Key_End:
    case Qt::Key_Escape:
      return show_newest(), true;
    default:
      return false;
  }
}

bool ChartGestures::press_row_key(const QKeyEvent& event) {
  const auto head = link_.playhead();
  switch (event.key()) {
    case Qt::Key_Up:
      return link_.set_playhead(head ? link_.x_beside(*head, -1) : link_.data().low), true;
    case Qt::Key_Down:
      return link_.set_playhead(head ? link_.x_beside(*head, 1) : link_.data().low), true;
    case Qt::Key_Home:
      return link_.set_playhead(link_.data().low), true;
    case Qt::Key_End:
      return link_.set_playhead(link_.data().high), true;
    case Qt::Key_Escape:
      return link_.set_playhead(std::nullopt), true;
    default:
      return false;
  }
}

}  // namespace mw::ui
