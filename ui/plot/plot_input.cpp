// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse, wheel and keys of a Plot: pan, zoom, playhead, hiding lines by the legend.
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/plot/plot.h"

namespace mw::ui {

void Plot::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (dragging_) {
    if (std::abs(at.x() - pressed_at_.x()) > 3) moved_ = true;
    if (moved_) {
      const double by = (pressed_at_.x() - at.x()) / area().width() * pressed_range_.size();
      link_.show_range({pressed_range_.low + by, pressed_range_.high + by});
    }
  }
  const bool over_legend = std::any_of(legend_.begin(), legend_.end(),
                                       [&](const LegendEntry& e) { return e.color.isValid() && e.at.contains(at); });
  setCursor(over_legend ? Qt::PointingHandCursor : Qt::ArrowCursor);
  if (const int group = group_at(at); group != hovered_) {
    hovered_ = group;
    emit group_hovered(group);
  }
  if (area().adjusted(-1, 0, 1, 0).contains(at) && !empty())
    link_.set_cursor(x_at(at.x()));
  else
    link_.set_cursor(std::nullopt);
}

void Plot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  for (const LegendEntry& e : legend_) {
    if (!e.at.contains(event->position()) || !e.color.isValid()) continue;
    if (!hidden_.erase(e.name)) hidden_.insert(e.name);
    y_ = {0, 0};
    refresh();
    return;
  }
  dragging_ = area().contains(event->position());
  moved_ = false;
  pressed_at_ = event->position();
  pressed_range_ = link_.range();
}

void Plot::mouseReleaseEvent(QMouseEvent* event) {
  if (dragging_ && !moved_ && event->button() == Qt::LeftButton && !empty())
    link_.set_playhead(x_at(event->position().x()));
  dragging_ = false;
}

void Plot::mouseDoubleClickEvent(QMouseEvent*) {
  dragging_ = false;
  link_.set_playhead(std::nullopt);
  link_.set_following(true);
}

void Plot::wheelEvent(QWheelEvent* event) {
  if (!area().contains(event->position()) || empty()) return;
  if (std::abs(event->angleDelta().x()) > std::abs(event->angleDelta().y()))
    link_.pan(-event->angleDelta().x() / 1200.0);
  else
    link_.zoom(std::pow(0.8, event->angleDelta().y() / 120.0), x_at(event->position().x()));
  event->accept();
}

int Plot::group_at(QPointF at) const {
  constexpr double kNear = 9;
  for (const LegendEntry& e : legend_)
    if (e.group >= 0 && e.at.contains(at)) return e.group;
  const QRectF a = area();
  if (!a.contains(at)) return -1;
  int group = -1;
  double nearest = kNear;
  for (const PlotLine& line : lines_) {
    if (line.group < 0 || !line.raw || line.raw->empty() || hidden(line.name)) continue;
    const auto sample = line.raw->nearest(x_at(at.x()));
    if (!sample) continue;
    const views::Point p = (*line.raw)[*sample];
    const double distance = std::hypot(to_x(a, p.x) - at.x(), to_y(a, p.y) - at.y());
    if (distance < nearest) nearest = distance, group = line.group;
  }
  return group;
}

bool Plot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  constexpr double kNear = 9;
  const auto* help = static_cast<QHelpEvent*>(event);
  const QRectF a = area();
  for (const PlotLine& line : lines_)
    for (const PlotFlag& flag : line.flags)
      if (!hidden(line.name) && QLineF(QPointF(to_x(a, flag.x), to_y(a, flag.y)), help->pos()).length() < kNear) {
        QToolTip::showText(help->globalPos(), flag.text, this);
        return true;
      }
  return QWidget::event(event);
}

void Plot::leaveEvent(QEvent*) {
  if (hovered_ >= 0) {
    hovered_ = -1;
    emit group_hovered(-1);
  }
  link_.set_cursor(std::nullopt);
}

void Plot::keyPressEvent(QKeyEvent* event) {
  const Span r = link_.range();
  const int far = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
  const double at = link_.playhead().value_or(r.high);
  switch (event->key()) {
    case Qt::Key_Left:
      link_.set_playhead(link_.x_beside(at, -far));
      break;
    case Qt::Key_Right:
      link_.set_playhead(link_.x_beside(at, far));
      break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      link_.zoom(0.7, link_.playhead().value_or((r.low + r.high) / 2));
      break;
    case Qt::Key_Minus:
      link_.zoom(1 / 0.7, link_.playhead().value_or((r.low + r.high) / 2));
      break;
    case Qt::Key_PageUp:
      link_.pan(-0.5);
      break;
    case Qt::Key_PageDown:
      link_.pan(0.5);
      break;
    case Qt::Key_Home:
      link_.set_playhead(link_.data().low);
      break;
    case Qt::Key_End:
    case Qt::Key_Escape:
      link_.set_playhead(std::nullopt);
      link_.set_following(true);
      break;
    default:
      QWidget::keyPressEvent(event);
  }
}

void Plot::contextMenuEvent(QContextMenuEvent* event) {
  more_->menu()->popup(event->globalPos());
}

}  // namespace mw::ui
