// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/elided_label.h"

#include <QHelpEvent>
#include <QPainter>
#include <QStyle>
#include <QToolTip>
#include <algorithm>

namespace mw::ui {
namespace {
constexpr int kLeastElided = 24;  // an ellipsis and one or two letters
}

ElidedLabel::ElidedLabel(Qt::TextElideMode mode, QWidget* parent, int most) : QLabel(parent), mode_(mode), most_(most) {
  setTextFormat(Qt::PlainText);  // names come from outside: no markup
}

QString ElidedLabel::shown() const {
  return fontMetrics().elidedText(text(), mode_, contentsRect().width());
}

// One pixel more than the advance of the text, which is rounded.
QSize ElidedLabel::sizeHint() const {
  const QMargins around = contentsMargins();
  const int wide = text().isEmpty() ? 0 : fontMetrics().horizontalAdvance(text()) + 1 + around.left() + around.right();
  return {std::min(most_, wide), QLabel::sizeHint().height()};
}

QSize ElidedLabel::minimumSizeHint() const {
  return {std::min(kLeastElided, sizeHint().width()), QLabel::minimumSizeHint().height()};
}

// A tooltip that was set explicitly has priority over the text.
bool ElidedLabel::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !toolTip().isEmpty()) return QLabel::event(event);
  if (shown() == text())
    event->ignore();
  else
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), text().toHtmlEscaped(), this);
  return true;
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  style()->drawItemText(&painter, contentsRect(),
                        static_cast<int>(QStyle::visualAlignment(layoutDirection(), alignment())), palette(),
                        isEnabled(), shown(), foregroundRole());
}

}  // namespace mw::ui
