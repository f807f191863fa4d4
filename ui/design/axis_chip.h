// SPDX-License-Identifier: GPL-3.0-or-later
// A mesh axis as something to take hold of: "tp 4". Tells the canvas what mouse, wheel and keys ask for. GUI thread.
#pragma once
#include <QAbstractButton>
#include <QColor>

namespace mw::ui {

class AxisChip : public QAbstractButton {
  Q_OBJECT
 public:
  explicit AxisChip(QWidget* canvas);
  void show_axis(const QString& axis, int size, const QString& place, const QColor& color);
  void show_state(bool previewed, bool refused);
  const QString& axis() const { return axis_; }
  QSize sizeHint() const override;

 signals:
  void grabbed(QPoint at);  // in the canvas, as those below
  void dragged(QPoint at);
  void let_go();
  void stepped(int by);  // sizes up or down
  void wheeled(int by);
  void picked();         // Space: to be carried with the arrow keys, and put down where it was
  void carried(int by);  // to the next or previous place
  void confirmed();      // Enter
  void cancelled();      // Escape
  void left();           // the focus went elsewhere
  void removed();        // Delete

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  QString axis_;
  QColor color_;
  bool previewed_ = false, refused_ = false, held_ = false;
};

}  // namespace mw::ui
