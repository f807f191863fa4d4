// SPDX-License-Identifier: GPL-3.0-or-later
// An edit of one axis by mouse, wheel or keys: attempts of actions on the given design, of which the last is committed
// or cancelled. Changes nothing itself. GUI thread.
#pragma once
#include <QObject>
#include <QPoint>
#include <QTimer>
#include <optional>
#include <utility>

#include "ui/pages/design/mesh_scene.h"

namespace mw::ui {

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
