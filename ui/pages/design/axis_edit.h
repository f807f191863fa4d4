// SPDX-License-Identifier: GPL-3.0-or-later
// An edit of one axis by mouse, wheel or keys: attempts of actions on the given design, of which the last is committed
// or cancelled. Changes nothing itself. GUI thread.
#pragma once
#include <QAbstractButton>
#include <QColor>
#include <QObject>
#include <QPoint>
#include <QTimer>
#include <optional>
#include <utility>

#include "ui/pages/design/mesh_scene.h"

namespace mw::ui {

enum class Editing { allowed, none };

// A draggable mesh axis such as "tp 4". Reports mouse, wheel and key actions to the canvas, unless the design is
// read-only.
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

class AxisEdit : public QObject {
  Q_OBJECT
 public:
  enum class Mode { none, mouse, keys, moving, wheel };
  AxisEdit(const CanvasState& state, const CanvasGeometry& geometry);
  void reset();           // for another given design
  void forget_attempt();  // keeps the mode
  void begin_drag(const QString& axis, QPoint at);
  void drag(QPoint at, int row_bottom);  // a drag that stays near the row of the axes changes the size
  void step(const QString& axis, int by, Mode mode);
  void begin_move(const QString& axis);
  void step_place(int by);
  void remove(const QString& axis);
  void add_axis();
  void use_value(const QString& axis, int size);
  void commit();
  void cancel();

  Mode mode() const { return mode_; }
  bool aims() const { return mode_ == Mode::mouse || mode_ == Mode::moving; }  // drop areas are shown
  const QString& axis() const { return axis_; }
  const std::optional<designer::Action>& action() const { return action_; }
  const std::optional<designer::ActionResult>& outcome() const { return outcome_; }  // of the action
  bool is_accepted() const { return outcome_ && outcome_->accepted; }

 signals:
  void started();    // another edit may have been cancelled
  void attempted();  // action() has an outcome
  void left();       // the edited axis is not over a drop area, or the edit was cancelled
  void cancelled();
  void committed(const mw::designer::ActionResult& result);
  void kept();     // committed without a change
  void refused();  // committed, but the action is not possible

 private:
  void begin(const QString& axis, Mode mode);
  void attempt(const designer::Action& action);
  const designer::ActionResult& outcome_of(const designer::Action& action);
  void leave();
  std::optional<designer::Action> action_at(QPoint at, int row_bottom) const;
  std::vector<designer::Action> places_for(const QString& axis) const;
  const CanvasState& state_;
  const CanvasGeometry& geometry_;
  Mode mode_ = Mode::none;
  QString axis_;
  QPoint drag_start_;
  int place_ = -1;
  std::optional<designer::Action> action_;
  std::optional<designer::ActionResult> outcome_;
  std::vector<std::pair<designer::Action, designer::ActionResult>> results_;  // for the given design: a drag repeats
  QTimer wheel_done_;
};

}  // namespace mw::ui
