// SPDX-License-Identifier: GPL-3.0-or-later
// One line of plain text that may be narrower than what it says: it is cut where the caller wants it, at whatever width
// it has now, and the tooltip has all of it. text() is always the whole. GUI thread.
#pragma once
#include <QLabel>

namespace mw::ui {

class ElidedLabel : public QLabel {
  Q_OBJECT
 public:
  // most: it asks for no more than that many pixels; it may be given more.
  ElidedLabel(Qt::TextElideMode mode, QWidget* parent, int most = QWIDGETSIZE_MAX);
  QString shown() const;  // as it is drawn now
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  Qt::TextElideMode mode_;
  int most_;
};

}  // namespace mw::ui
