// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/page_area.h"

#include <QEvent>
#include <QScrollBar>
#include <algorithm>

namespace mw::ui {
namespace {

constexpr int kLeastPageHeight = 240;

}  // namespace

PageArea::PageArea(QWidget* pages) {
  setWidget(pages);
  setWidgetResizable(true);
  setFocusPolicy(Qt::NoFocus);
}

QSize PageArea::minimumSizeHint() const {
  const QSize page = widget()->minimumSizeHint();
  return {page.width() + (scrolls_ ? verticalScrollBar()->sizeHint().width() : 0),
          std::min(page.height(), kLeastPageHeight)};
}

void PageArea::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  update_least_size();
}

// Another page, or another layout of this one, may need another size.
bool PageArea::eventFilter(QObject* watched, QEvent* event) {
  if (watched == widget() && event->type() == QEvent::LayoutRequest) update_least_size();
  return QScrollArea::eventFilter(watched, event);
}

void PageArea::update_least_size() {
  scrolls_ = widget()->minimumSizeHint().height() > height();
  updateGeometry();
}

}  // namespace mw::ui

#include "moc_page_area.cpp"
