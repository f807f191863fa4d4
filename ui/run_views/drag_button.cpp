// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/drag_button.h"

#include <QApplication>
#include <QDrag>
#include <QMouseEvent>

#include "ui/run_views/run_mime.h"

namespace mw::ui {

void DragButton::mousePressEvent(QMouseEvent* event) {
  pressed_at_ = event->pos();
  QPushButton::mousePressEvent(event);
}

void DragButton::mouseMoveEvent(QMouseEvent* event) {
  QPushButton::mouseMoveEvent(event);
  const bool far = (event->pos() - pressed_at_).manhattanLength() >= QApplication::startDragDistance();
  if (!(event->buttons() & Qt::LeftButton) || !far || !run_ || run_().empty()) return;
  setDown(false);
  auto* drag = new QDrag(this);
  drag->setMimeData(run_mime({run_()}));
  drag->exec(Qt::CopyAction);
}

}  // namespace mw::ui
