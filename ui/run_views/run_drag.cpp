// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/run_drag.h"

#include <QApplication>
#include <QDrag>
#include <QMouseEvent>

#include "ui/theme/text.h"

namespace mw::ui {

QString run_mime_type() {
  return u"application/x-meshwright-runs"_s;
}

QMimeData* run_mime(const std::vector<store::RunId>& runs) {
  QStringList ids;
  for (const auto& run : runs) ids << qs(run);
  auto* data = new QMimeData;
  data->setData(run_mime_type(), ids.join(u'\n').toUtf8());
  return data;
}

std::vector<store::RunId> runs_in(const QMimeData& data) {
  std::vector<store::RunId> out;
  for (const QByteArray& id : data.data(run_mime_type()).split('\n'))
    if (!id.isEmpty()) out.push_back(id.toStdString());
  return out;
}

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

#include "moc_run_drag.cpp"
