// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/axis_edit.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

AxisChip::AxisChip(QWidget* canvas, Editing editing) : QAbstractButton(canvas), editing_(editing) {
  setFocusPolicy(Qt::StrongFocus);
  if (editing_ == Editing::allowed) setCursor(Qt::OpenHandCursor);
  setAttribute(Qt::WA_Hover);
}

void AxisChip::show_axis(const QString& axis, int size, const QString& place, const QColor& color) {
  const QString label = axis % u' ' % QString::number(size);
  if (axis == axis_ && color == color_ && label == text() && place == place_) return;
  axis_ = axis;
  color_ = color;
  place_ = place;
  setText(label);
  setAccessibleName(tr("Mesh axis %1, %2").arg(axis, devices_text(size)));
  update();
  if (editing_ == Editing::none) {
    setAccessibleDescription(place);
    setToolTip(place);
    return;
  }
  const QString how = tr("Up and Down change the size; Space picks up the axis, Enter drops it, Escape cancels");
  setAccessibleDescription(place % u". "_s % how);
  setToolTip(place % u'\n' %
             tr("Drag along the row or use the wheel to change the size; drag onto a side of the grid or a tensor "
                "dimension to use the axis; Space picks it up"));
}

void AxisChip::show_state(bool previewed, bool refused) {
  if (previewed == previewed_ && refused == refused_) return;
  previewed_ = previewed;
  refused_ = refused;
  update();
}

QSize AxisChip::sizeHint() const {
  const QFontMetrics metrics(font());
  return {metrics.horizontalAdvance(text()) + 34, metrics.height() + 10};
}

void AxisChip::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter p(this);
  p.setRenderHint(QPainter::Antialiasing);
  const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
  const QColor edge = refused_ ? t.bad : hasFocus() ? t.accent : previewed_ ? color_ : t.line;
  p.setPen(QPen(edge, hasFocus() || refused_ || previewed_ ? 2 : 1, previewed_ ? Qt::DashLine : Qt::SolidLine));
  p.setBrush(underMouse() || isDown() ? t.hover : t.panel);
  p.drawRoundedRect(box, box.height() / 2, box.height() / 2);
  p.setPen(Qt::NoPen);
  p.setBrush(color_);
  p.drawEllipse(QPointF(box.left() + 13, box.center().y()), 4.5, 4.5);
  p.setPen(refused_ ? t.bad : t.text);
  p.drawText(box.adjusted(22, 0, -8, 0), Qt::AlignVCenter | Qt::AlignLeft, text());
}

void AxisChip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  setFocus(Qt::MouseFocusReason);
  if (editing_ == Editing::none) return;
  is_dragged_ = true;
  setCursor(Qt::ClosedHandCursor);
  emit drag_started(mapToParent(event->position().toPoint()));
}

void AxisChip::mouseMoveEvent(QMouseEvent* event) {
  if (is_dragged_) emit dragged(mapToParent(event->position().toPoint()));
}

void AxisChip::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !is_dragged_) return;
  is_dragged_ = false;
  setCursor(Qt::OpenHandCursor);
  emit drag_ended();
}

void AxisChip::wheelEvent(QWheelEvent* event) {
  if (editing_ == Editing::none) return event->ignore();
  const int by = event->angleDelta().y();
  if (by != 0) emit wheel_stepped(by > 0 ? 1 : -1);
  event->accept();
}

void AxisChip::keyPressEvent(QKeyEvent* event) {
  if (editing_ == Editing::none) return QAbstractButton::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return emit stepped(1);
    case Qt::Key_Down:
    case Qt::Key_Minus:
      return emit stepped(-1);
    case Qt::Key_Left:
      return emit place_stepped(-1);
    case Qt::Key_Right:
      return emit place_stepped(1);
    case Qt::Key_Space:
      return emit move_toggled();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return emit confirmed();
    case Qt::Key_Escape:
      is_dragged_ = false;
      return emit cancelled();
    case Qt::Key_Delete:
    case Qt::Key_Backspace:
      return emit removed();
    default:
      QAbstractButton::keyPressEvent(event);
  }
}

bool AxisChip::event(QEvent* event) {
  if (event->type() == QEvent::FocusOut && !is_dragged_) emit focus_lost();
  const bool handled = QAbstractButton::event(event);
  constexpr QEvent::Type kOfAttention[] = {QEvent::Enter, QEvent::Leave, QEvent::FocusIn, QEvent::FocusOut};
  if (std::count(std::begin(kOfAttention), std::end(kOfAttention), event->type()) > 0) emit attention_changed();
  return handled;
}

using designer::Action;

namespace {

constexpr int kStepPixels = 28;  // drag distance for the next size
constexpr int kRowBelow = 14;    // a drag within this distance below the row changes the size

designer::DesignContext context_of(const CanvasDesign& design) {
  return {design.inventory.get(), &design.target, design.adapters, design.use};
}

}  // namespace

AxisEdit::AxisEdit(const CanvasState& state, const CanvasGeometry& geometry) : state_(state), geometry_(geometry) {
  wheel_done_.setSingleShot(true);
  wheel_done_.setInterval(450);
  connect(&wheel_done_, &QTimer::timeout, this, [this] {
    if (mode_ == Mode::wheel) commit();
  });
}

void AxisEdit::reset() {
  results_.clear();
  mode_ = Mode::none;
  forget_attempt();
}

void AxisEdit::forget_attempt() {
  action_.reset();
  outcome_.reset();
}

void AxisEdit::begin(const QString& axis, Mode mode) {
  mode_ = mode;
  axis_ = axis;
}

void AxisEdit::begin_drag(const QString& axis, QPoint at) {
  cancel();
  begin(axis, Mode::mouse);
  drag_start_ = at;
  emit started();
}

void AxisEdit::drag(QPoint at, int row_bottom) {
  if (mode_ != Mode::mouse) return;
  if (const std::optional<Action> action = action_at(at, row_bottom))
    attempt(*action);
  else
    leave();
}

// The action of a drop at this position.
std::optional<Action> AxisEdit::action_at(QPoint at, int row_bottom) const {
  const std::string axis = ss(axis_);
  if (state_.shown.tensor)
    for (int d = 0; d < static_cast<int>(state_.shown.tensor->dims.size()); ++d)
      if (geometry_.tensor_dimension_at(d).contains(at)) return Action{Action::Kind::shard, axis, d, state_.tensor};
  for (const designer::CanvasSide& s : state_.shown.picture.sides)
    if (geometry_.side_at(s.dimension).contains(at)) return Action{Action::Kind::lay, axis, s.dimension};
  if (at.y() > row_bottom + kRowBelow) return {};
  const int moved = static_cast<int>(std::lround((at.x() - drag_start_.x()) / static_cast<double>(kStepPixels)));
  const std::vector<int> sizes = designer::size_steps(context_of(state_.design), state_.given.choice.mesh, axis);
  const auto now = std::find(sizes.begin(), sizes.end(), state_.given.choice.mesh.size(axis));
  const auto index =
      std::clamp<std::ptrdiff_t>(now - sizes.begin() + moved, 0, static_cast<std::ptrdiff_t>(sizes.size()) - 1);
  if (moved == 0 || sizes[static_cast<size_t>(index)] == *now) return {};
  return Action{Action::Kind::resize, axis, sizes[static_cast<size_t>(index)]};
}

void AxisEdit::step(const QString& axis, int by, Mode mode) {
  if (mode_ != mode || axis_ != axis) cancel();
  begin(axis, mode);
  const std::vector<int> sizes = designer::size_steps(context_of(state_.design), state_.given.choice.mesh, ss(axis));
  const int from =
      action_ && action_->kind == Action::Kind::resize ? action_->value : state_.given.choice.mesh.size(ss(axis));
  const auto at = std::find(sizes.begin(), sizes.end(), from) - sizes.begin();
  const auto next = std::clamp<std::ptrdiff_t>(at + by, 0, static_cast<std::ptrdiff_t>(sizes.size()) - 1);
  attempt({Action::Kind::resize, ss(axis), sizes[static_cast<size_t>(next)]});
  if (mode == Mode::wheel) wheel_done_.start();
}

// All sides and dimensions in the order of the arrow keys; the last entry releases the placement.
std::vector<Action> AxisEdit::places_for(const QString& axis) const {
  std::vector<Action> places;
  for (const designer::CanvasSide& s : state_.given.picture.sides)
    places.push_back({Action::Kind::lay, ss(axis), s.dimension});
  if (state_.given.tensor) {
    for (int d = 0; d < static_cast<int>(state_.given.tensor->dims.size()); ++d)
      places.push_back({Action::Kind::shard, ss(axis), d, state_.tensor});
    places.push_back({Action::Kind::unshard, ss(axis), 0, state_.tensor});
  }
  places.push_back({Action::Kind::release, ss(axis), 0});
  return places;
}

void AxisEdit::begin_move(const QString& axis) {
  cancel();
  begin(axis, Mode::moving);
  place_ = -1;
  step_place(1);
}

void AxisEdit::step_place(int by) {
  const std::vector<Action> places = places_for(axis_);
  const int n = static_cast<int>(places.size());
  place_ = place_ < 0 ? (by > 0 ? 0 : n - 1) : (place_ + by + n) % n;
  attempt(places[static_cast<size_t>(place_)]);
}

void AxisEdit::remove(const QString& axis) {
  cancel();
  const std::string name = ss(axis);
  const bool laid = std::any_of(state_.given.choice.places.begin(), state_.given.choice.places.end(),
                                [&](const mesh::RequestedPlacement& p) { return p.axis == name; });
  begin(axis, Mode::keys);
  attempt({laid ? Action::Kind::release : Action::Kind::remove, name, 0});
  commit();
}

void AxisEdit::add_axis() {
  std::string name = "data";
  for (int i = 2; state_.given.choice.mesh.has(name); ++i) name = "axis" + std::to_string(i);
  cancel();
  begin(qs(name), Mode::keys);
  attempt({Action::Kind::add, name, 0});
  commit();
}

void AxisEdit::use_value(const QString& axis, int size) {
  cancel();
  begin(axis, Mode::keys);
  attempt({Action::Kind::resize, ss(axis), size});
  commit();
}

void AxisEdit::attempt(const Action& action) {
  if (action_ && *action_ == action) return;
  if (!state_.design.inventory || !state_.design.placement) return;
  action_ = action;
  outcome_ = outcome_of(action);
  emit attempted();
}

const designer::ActionResult& AxisEdit::outcome_of(const Action& action) {
  const auto at = std::find_if(results_.begin(), results_.end(), [&](const auto& t) { return t.first == action; });
  if (at != results_.end()) return at->second;
  results_.emplace_back(
      action, designer::try_action(context_of(state_.design), state_.given.choice, *state_.design.placement, action));
  return results_.back().second;
}

void AxisEdit::leave() {
  if (!action_) return;
  forget_attempt();
  emit left();
}

void AxisEdit::commit() {
  wheel_done_.stop();
  mode_ = Mode::none;
  if (!action_ || !outcome_) return;
  if (!outcome_->accepted) return emit refused();
  const designer::ActionResult done = *outcome_;
  forget_attempt();
  if (done.choice == state_.given.choice) return emit kept();
  results_.clear();
  emit committed(done);
}

void AxisEdit::cancel() {
  wheel_done_.stop();
  mode_ = Mode::none;
  leave();
  emit cancelled();
}

}  // namespace mw::ui

#include "moc_axis_edit.cpp"
