// SPDX-License-Identifier: GPL-3.0-or-later
// One line of plain text that is elided to its width. The tooltip shows the whole text, and text() always returns it.
// GUI thread.
#pragma once
#include <QLabel>

namespace mw::ui {

class ElidedLabel : public QLabel {
  Q_OBJECT
 public:
  // most: largest width in pixels of the size hint.
  ElidedLabel(Qt::TextElideMode mode, QWidget* parent, int most = QWIDGETSIZE_MAX);
  QString shown() const;  // the elided text
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
