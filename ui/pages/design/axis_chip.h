// SPDX-License-Identifier: GPL-3.0-or-later
// A draggable mesh axis such as "tp 4". Reports mouse, wheel and key actions to the canvas, unless the design is
// read-only. GUI thread.
#pragma once
#include <QAbstractButton>
#include <QColor>

namespace mw::ui {

enum class Editing { allowed, none };

class AxisChip : public QAbstractButton {
  Q_OBJECT
 public:
  AxisChip(QWidget* canvas, Editing editing);
  void show_axis(const QString& axis, int size, const QString& place, const QColor& color);
  void show_state(bool previewed, bool refused);
  const QString& axis() const { return axis_; }
  bool has_attention() const { return underMouse() || hasFocus(); }
  QSize sizeHint() const override;

 signals:
  void drag_started(QPoint at);  // in coordinates of the canvas, as below
  void dragged(QPoint at);
  void drag_ended();
  void stepped(int by);  // next larger or smaller size
  void wheel_stepped(int by);
  void move_toggled();         // Space: starts or ends moving with the arrow keys
  void place_stepped(int by);  // to the next or previous place
  void confirmed();            // Enter
  void cancelled();            // Escape
  void focus_lost();           // the chip lost the focus
  void removed();              // Delete
  void attention_changed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  const Editing editing_;
  QString axis_, place_;
  QColor color_;
  bool previewed_ = false, refused_ = false, is_dragged_ = false;
};

}  // namespace mw::ui
