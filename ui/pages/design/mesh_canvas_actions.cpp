// SPDX-License-Identifier: GPL-3.0-or-later
// Moving and resizing axes of a MeshCanvas by mouse, wheel or keys: a sequence of previews that is confirmed or
// cancelled.
#include <QAccessible>
#include <QPushButton>
#include <cmath>

#include "ui/pages/design/mesh_canvas.h"
#include "ui/theme/text.h"

namespace mw::ui {

using designer::Action;

namespace {

constexpr int kStepPixels = 28;  // drag distance for the next size
constexpr int kRowBelow = 14;    // a drag within this distance below the row changes the size

designer::DesignContext subject_of(const CanvasDesign& design) {
  return {design.inventory.get(), &design.target, design.adapters, design.use};
}

}  // namespace

void MeshCanvas::connect_chip(AxisChip* c) {
  connect(c, &AxisChip::attention_changed, this, &MeshCanvas::redraw);
  if (editing_ == Editing::none) return;
  connect(c, &AxisChip::grabbed, this, [this, c](QPoint at) { take_hold(c->axis(), at); });
  connect(c, &AxisChip::dragged, this, &MeshCanvas::drag);
  connect(c, &AxisChip::let_go, this, [this] {
    if (hold_ == Hold::mouse) commit();
  });
  connect(c, &AxisChip::stepped, this, [this, c](int by) { step(c->axis(), by, Hold::keys); });
  connect(c, &AxisChip::wheeled, this, [this, c](int by) { step(c->axis(), by, Hold::wheel); });
  connect(c, &AxisChip::picked, this, [this, c] { hold_ == Hold::carried ? commit() : pick(c->axis()); });
  connect(c, &AxisChip::carried, this, [this](int by) {
    if (hold_ == Hold::carried) carry(by);
  });
  connect(c, &AxisChip::confirmed, this, [this] {
    if (hold_ != Hold::none) commit();
  });
  connect(c, &AxisChip::cancelled, this, &MeshCanvas::cancel);
  connect(c, &AxisChip::left, this, [this] {
    if (hold_ == Hold::keys || hold_ == Hold::carried) cancel();
  });
  connect(c, &AxisChip::removed, this, [this, c] { remove(c->axis()); });
}

// --- With the mouse ---

void MeshCanvas::take_hold(const QString& axis, QPoint at) {
  cancel();
  hold_ = Hold::mouse;
  held_axis_ = axis;
  grabbed_at_ = cursor_ = at;
  redraw();
}

void MeshCanvas::drag(QPoint at) {
  if (hold_ != Hold::mouse) return;
  cursor_ = at;
  if (const std::optional<Action> action = action_at(at))
    attempt(*action);
  else
    leave_preview();
  update();
}

// The action of a drop at this position.
std::optional<Action> MeshCanvas::action_at(QPoint at) const {
  const std::string axis = ss(held_axis_);
  if (shown_.tensor)
    for (int d = 0; d < static_cast<int>(shown_.tensor->dims.size()); ++d)
      if (tensor_dimension_at(d).contains(at)) return Action{Action::Kind::shard, axis, d, tensor_};
  for (const designer::CanvasSide& s : shown_.picture.sides)
    if (side_at(s.dimension).contains(at)) return Action{Action::Kind::lay, axis, s.dimension};
  if (chips_.empty() || at.y() > chips_.front()->geometry().bottom() + kRowBelow) return {};
  const int moved = static_cast<int>(std::lround((at.x() - grabbed_at_.x()) / static_cast<double>(kStepPixels)));
  const std::vector<int> sizes = designer::size_steps(subject_of(design_), given_.choice.mesh, axis);
  const auto now = std::find(sizes.begin(), sizes.end(), given_.choice.mesh.size(axis));
  const auto index =
      std::clamp<std::ptrdiff_t>(now - sizes.begin() + moved, 0, static_cast<std::ptrdiff_t>(sizes.size()) - 1);
  if (moved == 0 || sizes[static_cast<size_t>(index)] == *now) return {};
  return Action{Action::Kind::resize, axis, sizes[static_cast<size_t>(index)]};
}

// --- With the wheel and the keys ---

void MeshCanvas::step(const QString& axis, int by, Hold hold) {
  if (hold_ != hold || held_axis_ != axis) cancel();
  hold_ = hold;
  held_axis_ = axis;
  if (AxisChip* c = chip(axis)) cursor_ = c->geometry().bottomLeft();
  const std::vector<int> sizes = designer::size_steps(subject_of(design_), given_.choice.mesh, ss(axis));
  const int from =
      action_ && action_->kind == Action::Kind::resize ? action_->value : given_.choice.mesh.size(ss(axis));
  const auto at = std::find(sizes.begin(), sizes.end(), from) - sizes.begin();
  const auto next = std::clamp<std::ptrdiff_t>(at + by, 0, static_cast<std::ptrdiff_t>(sizes.size()) - 1);
  attempt({Action::Kind::resize, ss(axis), sizes[static_cast<size_t>(next)]});
  if (hold == Hold::wheel) wheel_done_.start();
}

// All sides and dimensions in the order of the arrow keys; the last entry releases the placement.
std::vector<Action> MeshCanvas::places_for(const QString& axis) const {
  std::vector<Action> places;
  for (const designer::CanvasSide& s : given_.picture.sides)
    places.push_back({Action::Kind::lay, ss(axis), s.dimension});
  if (given_.tensor) {
    for (int d = 0; d < static_cast<int>(given_.tensor->dims.size()); ++d)
      places.push_back({Action::Kind::shard, ss(axis), d, tensor_});
    places.push_back({Action::Kind::unshard, ss(axis), 0, tensor_});
  }
  places.push_back({Action::Kind::release, ss(axis), 0});
  return places;
}

void MeshCanvas::pick(const QString& axis) {
  cancel();
  hold_ = Hold::carried;
  held_axis_ = axis;
  carried_ = -1;
  carry(1);
}

void MeshCanvas::carry(int by) {
  const std::vector<Action> places = places_for(held_axis_);
  const int n = static_cast<int>(places.size());
  carried_ = carried_ < 0 ? (by > 0 ? 0 : n - 1) : (carried_ + by + n) % n;
  const Action& action = places[static_cast<size_t>(carried_)];
  if (action.kind == Action::Kind::lay) cursor_ = side_at(action.value).center().toPoint();
  if (action.kind == Action::Kind::shard) cursor_ = tensor_dimension_at(action.value).center().toPoint();
  attempt(action);
}

void MeshCanvas::remove(const QString& axis) {
  cancel();
  const std::string name = ss(axis);
  const bool laid = std::any_of(given_.choice.places.begin(), given_.choice.places.end(),
                                [&](const mesh::RequestedPlacement& p) { return p.axis == name; });
  hold_ = Hold::keys;
  held_axis_ = axis;
  if (AxisChip* c = chip(axis)) cursor_ = c->geometry().bottomLeft();
  attempt({laid ? Action::Kind::release : Action::Kind::remove, name, 0});
  commit();
}

void MeshCanvas::add_axis() {
  std::string name = "data";
  for (int i = 2; given_.choice.mesh.has(name); ++i) name = "axis" + std::to_string(i);
  cancel();
  hold_ = Hold::keys;
  held_axis_ = qs(name);
  attempt({Action::Kind::add, name, 0});
  commit();
}

// --- One attempt ---

void MeshCanvas::attempt(const Action& action) {
  if (action_ && *action_ == action) return;
  if (!design_.inventory || !design_.placement) return;
  fix_->hide();
  action_ = action;
  outcome_ = outcome_of(action);
  message_.clear();
  if (outcome_->accepted) {
    Scene scene;
    if (build(scene, outcome_->choice, outcome_->placement ? outcome_->placement : design_.placement))
      shown_ = std::move(scene);
    emit previewed(outcome_->choice, qs(outcome_->text));
  } else {
    shown_ = given_;
    message_ = qs(designer::refusal_text(*outcome_));
    emit preview_ended();
    emit refused(message_);
  }
  show_chips();
  place_all();
  setAccessibleDescription(outcome_->accepted ? qs(outcome_->text) : message_);
  QAccessibleEvent told(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&told);
  redraw();
}

const designer::ActionResult& MeshCanvas::outcome_of(const Action& action) {
  const auto at = std::find_if(tried_.begin(), tried_.end(), [&](const auto& t) { return t.first == action; });
  if (at != tried_.end()) return at->second;
  tried_.emplace_back(action, designer::try_action(subject_of(design_), given_.choice, *design_.placement, action));
  return tried_.back().second;
}

// The axis is still held, but not over a drop area.
void MeshCanvas::leave_preview() {
  if (!action_) return;
  action_.reset();
  outcome_.reset();
  message_.clear();
  shown_ = given_;
  show_chips();
  place_all();
  emit preview_ended();
  redraw();
}

void MeshCanvas::commit() {
  wheel_done_.stop();
  hold_ = Hold::none;
  if (!action_ || !outcome_) return;
  if (!outcome_->accepted) return offer_fix();
  const designer::ActionResult done = *outcome_;
  action_.reset();
  outcome_.reset();
  if (done.choice == given_.choice) {
    shown_ = given_;
    show_chips();
    place_all();
    redraw();
    emit preview_ended();
    return;
  }
  show_chips();
  redraw();
  emit dropped(done.choice, qs(done.text));
  // The next action starts from this design, although its prediction has not arrived yet.
  design_.choice = done.choice;
  if (done.placement) design_.placement = done.placement;
  given_ = shown_;
  tried_.clear();
}

// Keeps the refusal visible and offers the nearest possible size as a button.
void MeshCanvas::offer_fix() {
  if (outcome_->nearest_size) {
    fix_->setText(tr("Use %1 %2").arg(qs(action_->axis)).arg(*outcome_->nearest_size));
    fix_->show();
    fix_->raise();
  }
  place_all();
  redraw();
}

void MeshCanvas::cancel() {
  wheel_done_.stop();
  hold_ = Hold::none;
  fix_->hide();
  leave_preview();
  redraw();
}

}  // namespace mw::ui
