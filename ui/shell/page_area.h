// SPDX-License-Identifier: GPL-3.0-or-later
// The place of the pages in the window. A page that needs more height than a low screen has, scrolls.
#pragma once
#include <QScrollArea>

namespace mw::ui {

class PageArea : public QScrollArea {
  Q_OBJECT
 public:
  explicit PageArea(QWidget* pages);  // takes it over
  QSize minimumSizeHint() const override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void update_least_size();

  bool scrolls_ = false;  // the bar needs width beside the page
};

}  // namespace mw::ui
