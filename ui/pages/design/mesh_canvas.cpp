// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/mesh_canvas.h"

#include <QAccessible>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPushButton>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "ui/theme/accessible_role.h"
#include "ui/theme/axis_color.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

using designer::Action;

namespace {

constexpr int kCanvasMargin = 8, kSide = 22, kPointer = 6;
constexpr double kMostPitch = 200;
constexpr int kStepPixels = 28;  // drag distance for the next size
constexpr int kRowBelow = 14;    // a drag within this distance below the row changes the size

// Whether the side is a line below the grid.
bool is_below(const designer::CanvasSide& side) {
  using Where = designer::CanvasSide::Where;
  return side.where == Where::layers || side.where == Where::network || side.where == Where::chip;
}

designer::DesignContext context_of(const CanvasDesign& design) {
  return {design.inventory.get(), &design.target, design.adapters, design.use};
}

}  // namespace

MeshCanvas::MeshCanvas(Editing editing, QWidget* parent)
    : QWidget(parent), editing_(editing), add_(new QToolButton(this)) {
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Graphic);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(editing_ == Editing::allowed ? tr("Mesh canvas") : tr("Pinned mesh canvas"));
  add_->setVisible(editing_ == Editing::allowed);
  add_->setText(u"+"_s);
  add_->setAccessibleName(tr("Add a mesh axis"));
  add_->setToolTip(tr("Add a mesh axis of one device"));
  connect(add_, &QToolButton::clicked, this, &MeshCanvas::add_axis);
  wheel_done_.setSingleShot(true);
  wheel_done_.setInterval(450);
  connect(&wheel_done_, &QTimer::timeout, this, [this] {
    if (edit_mode_ == EditMode::wheel) commit();
  });
}

// During destruction a chip loses the focus and would notify the destroyed canvas.
MeshCanvas::~MeshCanvas() {
  for (AxisChip* chip : chips_) chip->disconnect(this);
}

void MeshCanvas::set_design(CanvasDesign design) {
  design_ = std::move(design);
  cached_results_.clear();
  edit_mode_ = EditMode::none;
  action_.reset();
  outcome_.reset();
  remove_values();
  show_given();
}

void MeshCanvas::show_given() {
  message_.clear();
  given_ = {};
  drawable_ = design_.inventory && design_.placement && build(given_, design_.choice, design_.placement);
  if (!drawable_) given_.choice = design_.choice;
  shown_ = given_;
  add_->setEnabled(design_.inventory != nullptr);
  show_scene();
  setAccessibleDescription(summary());
}

// Returns false if the mesh does not fit its target; then only the axes are shown.
bool MeshCanvas::build(Scene& scene, const designer::MeshDesign& choice,
                       std::shared_ptr<const mesh::Placement> placement) {
  try {
    Scene made;
    made.layout = mesh::lay_out(choice.mesh, design_.target, choice.places);
    made.choice = choice;
    made.placement = std::move(placement);
    made.picture = designer::canvas_picture(design_.target, made.layout);
    select_tensor(made);
    scene = std::move(made);
    return true;
  } catch (const Error& error) {
    message_ = qs(error.problem().message);
    return false;
  }
}

void MeshCanvas::select_tensor(Scene& scene) const {
  scene.tensor = scene.placement ? mesh::find_tensor(*scene.placement, tensor_) : nullptr;
  scene.pieces.clear();
  if (scene.tensor) scene.pieces = designer::piece_areas(*scene.tensor, scene.choice.mesh, scene.layout);
  scene.edges.clear();
  for (const CanvasTraffic& t : traffic_)
    scene.edges.push_back(designer::axis_edges(scene.choice.mesh, scene.layout, ss(t.axis)));
}

void MeshCanvas::set_tensor(const std::string& name) {
  tensor_ = name;
  show_tensor();
  setAccessibleDescription(summary());
}

void MeshCanvas::show_tensor() {
  select_tensor(given_);
  select_tensor(shown_);
  place_all();
  redraw();
}

void MeshCanvas::show_scene() {
  show_chips();
  place_all();
  redraw();
}

void MeshCanvas::redraw() {
  stale_ = true;
  update();
}

void MeshCanvas::set_memory(std::vector<double> shares) {
  if (shares == memory_) return;
  memory_ = std::move(shares);
  redraw();
}

void MeshCanvas::set_traffic(std::vector<CanvasTraffic> traffic) {
  if (traffic == traffic_) return;
  traffic_ = std::move(traffic);
  show_tensor();
}

void MeshCanvas::select_device(int device) {
  if (device == selected_) return;
  selected_ = device;
  setAccessibleDescription(device < 0 ? summary() : status());
  update();
}

QString MeshCanvas::summary() const {
  QString text = design_.caption % u": "_s % qs(mesh::to_text(shown_.choice.mesh));
  if (const mesh::PlacedTensor* t = shown_.tensor)
    text += u"; "_s % qs(t->name) % u' ' % qs(mesh::to_text(t->spec)) % u", "_s %
            (t->shards == 1 ? tr("replicated on all devices") : tr("%n piece(s)", nullptr, t->shards));
  else if (!tensor_.empty())
    text += u"; "_s % tr("this design has no tensor %1").arg(qs(tensor_));
  for (const std::string& axis : shown_.picture.network_axes)
    text += u"; "_s % tr("%1 crosses the network").arg(qs(axis));
  for (const CanvasTraffic& t : traffic_) text += u"; "_s % t.text;
  return message_.isEmpty() ? text : text % u". "_s % message_;
}

// --- Chips of the axes, one per axis of the shown mesh ---

void MeshCanvas::show_chips() {
  const auto& axes = shown_.choice.mesh.axes;
  while (chips_.size() > axes.size()) {
    chips_.back()->hide();
    chips_.back()->deleteLater();
    chips_.pop_back();
  }
  while (chips_.size() < axes.size()) {
    chips_.push_back(new AxisChip(this, editing_));
    connect_chip(chips_.back());
    if (chips_.size() > 1) setTabOrder(chips_[chips_.size() - 2], chips_.back());
    chips_.back()->show();
  }
  const bool placed = shown_.layout.axes.size() == axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    const QString place = placed ? qs(designer::placement_text(shown_.layout.axes[i], shown_.picture)) : QString();
    // Shows the requested size even if it is refused.
    int size = axes[i].size;
    if (action_ && action_->kind == Action::Kind::resize && action_->axis == axes[i].name) size = action_->value;
    chips_[i]->show_axis(qs(axes[i].name), size, place, axis_color(qs(axes[i].name)));
    const bool edited = action_ && action_->axis == axes[i].name && outcome_;
    chips_[i]->show_state(edited && outcome_->accepted, edited && !outcome_->accepted);
  }
}

AxisChip* MeshCanvas::chip(const QString& axis) const {
  for (AxisChip* c : chips_)
    if (c->axis() == axis) return c;
  return nullptr;
}

// --- Geometry ---

void MeshCanvas::place_all() {
  int x = kCanvasMargin, row = 0;
  for (AxisChip* c : chips_) {
    const QSize size = c->sizeHint();
    c->setGeometry(x, kCanvasMargin, size.width(), size.height());
    x += size.width() + 6;
    row = std::max(row, size.height());
  }
  row = std::max(row, add_->sizeHint().height());
  add_->setGeometry(x, kCanvasMargin, std::max(row, add_->sizeHint().width()), row);
  place_values();
  callout_area_ = QRectF(kCanvasMargin, kCanvasMargin + row + kPointer, width() - 2 * kCanvasMargin,
                         2 * QFontMetrics(small_font()).height() + 6);
  const double top = callout_area_.bottom() + 4, bottom = height() - kCanvasMargin;
  const double wide = shows_tensor_beside() ? std::clamp(width() * 0.42, 190.0, 340.0) : 0;
  const double most = std::max(90.0, (bottom - top) * 0.45);
  const double high = shows_tensor_beside() ? 0 : lacks_height() ? 20 : std::clamp(tensor_height(), 90.0, most);
  tensor_area_ = shows_tensor_beside() ? QRectF(width() - wide, top, wide - kCanvasMargin, bottom - top)
                                       : QRectF(kCanvasMargin, bottom - high, width() - 2 * kCanvasMargin, high);
  grid_area_ = QRectF(kCanvasMargin + kSide, top + kSide, width() - 2 * kCanvasMargin - kSide - wide,
                      bottom - top - kSide - high);
  for (const designer::CanvasSide& s : shown_.picture.sides)
    if (is_below(s)) grid_area_.setHeight(grid_area_.height() - kSide);
  const designer::CanvasPicture& p = shown_.picture;
  if (p.width <= 0 || p.height <= 0) return;
  pitch_ = std::max(1.0, std::min({grid_area_.width() / p.width, grid_area_.height() / p.height, kMostPitch}));
  origin_ = grid_area_.center() - QPointF(p.width, p.height) * pitch_ / 2;
}

bool MeshCanvas::shows_tensor_beside() const {
  return width() > 520;
}

// Name, dimensions, then one line for the shards, each axis and each collective.
double MeshCanvas::tensor_height() const {
  if (!shown_.tensor) return 20;
  const auto sums = std::count_if(traffic_.begin(), traffic_.end(), [](const auto& t) { return !t.label.isEmpty(); });
  return 73 + 16 * (1 + static_cast<double>(sums) + static_cast<double>(traffic_.size())) + 4;
}

bool MeshCanvas::lacks_height() const {
  constexpr int kLeast = 250;
  return !shows_tensor_beside() && height() < kLeast;
}

QRectF MeshCanvas::to_pixels(const designer::Box& box) const {
  return {origin_.x() + box.x * pitch_, origin_.y() + box.y * pitch_, box.width * pitch_, box.height * pitch_};
}

QRectF MeshCanvas::device_at(int device) const {
  const auto& devices = shown_.picture.devices;
  if (device < 0 || device >= static_cast<int>(devices.size())) return {};
  return to_pixels(devices[static_cast<size_t>(device)].at);
}

QPointF MeshCanvas::center_of(int device) const {
  return device_at(device).center();
}

QRectF MeshCanvas::side_at(int dimension) const {
  const double width = shown_.picture.width * pitch_, height = shown_.picture.height * pitch_;
  double below = origin_.y() + height + 3;
  for (const designer::CanvasSide& s : shown_.picture.sides) {
    if (s.dimension != dimension) {
      if (is_below(s)) below += kSide;
      continue;
    }
    if (s.where == designer::CanvasSide::Where::left) return {origin_.x() - kSide, origin_.y(), kSide - 4.0, height};
    const double wide = std::max(width, 150.0), x = origin_.x() + (width - wide) / 2;
    if (is_below(s)) return {x, below, wide, kSide - 4.0};
    return {x, origin_.y() - kSide, wide, kSide - 4.0};
  }
  return {};
}

QRectF MeshCanvas::tensor_dimension_at(int index) const {
  const mesh::PlacedTensor* t = shown_.tensor;
  if (!t || lacks_height() || index < 0 || index >= static_cast<int>(t->dims.size())) return {};
  const double n = static_cast<double>(t->dims.size());
  const double width = std::min(110.0, (tensor_area_.width() - 6 * (n - 1)) / n);
  return {tensor_area_.left() + index * (width + 6), tensor_area_.top() + 24, width, 44};
}

int MeshCanvas::device_under(QPointF at) const {
  for (size_t d = 0; d < shown_.picture.devices.size(); ++d)
    if (device_at(static_cast<int>(d)).contains(at)) return static_cast<int>(d);
  return -1;
}

// --- Looking around ---

void MeshCanvas::resizeEvent(QResizeEvent*) {
  place_all();
  redraw();
}

// The tooltip shows all of what may not fit: the traffic and the callout.
bool MeshCanvas::event(QEvent* event) {
  const auto traffic_at = [this](QPoint at) {
    QStringList lines;
    if (callout_area_.contains(at)) return callout();
    if (tensor_area_.contains(at))
      for (const CanvasTraffic& t : traffic_) lines << t.text;
    return lines.join(u'\n');
  };
  return show_tooltip(event, *this, traffic_at) || QWidget::event(event);
}

void MeshCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) {
    show_scene();
  }
  QWidget::changeEvent(event);
}

void MeshCanvas::mouseMoveEvent(QMouseEvent* event) {
  const int under = device_under(event->position());
  if (under == hovered_) return;
  hovered_ = under;
  update();
}

void MeshCanvas::mousePressEvent(QMouseEvent* event) {
  select_device(device_under(event->position()));
  emit device_selected(selected_);
}

void MeshCanvas::leaveEvent(QEvent*) {
  hovered_ = -1;
  update();
}

void MeshCanvas::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
      return move_selection(-1, 0);
    case Qt::Key_Right:
      return move_selection(1, 0);
    case Qt::Key_Up:
      return move_selection(0, -1);
    case Qt::Key_Down:
      return move_selection(0, 1);
    case Qt::Key_Escape:
      return cancel();
    default:
      QWidget::keyPressEvent(event);
  }
}

// Selects the nearest device in that direction.
void MeshCanvas::move_selection(int dx, int dy) {
  const int devices = this->devices();
  if (devices == 0) return;
  int next = selected_;
  if (selected_ < 0 || selected_ >= devices) {
    next = 0;
  } else {
    const QPointF from = center_of(selected_);
    double best = 1e18;
    for (int d = 0; d < devices; ++d) {
      const QPointF way = center_of(d) - from;
      const double along = way.x() * dx + way.y() * dy, aside = std::abs(way.x() * dy) + std::abs(way.y() * dx);
      if (along < 1 || along + 4 * aside >= best) continue;
      best = along + 4 * aside;
      next = d;
    }
  }
  select_device(next);
  emit device_selected(selected_);
}

QString MeshCanvas::status() const {
  const int device = hovered_ >= 0 ? hovered_ : selected_;
  if (device < 0 || !drawable_) return {};
  if (device >= devices()) return tr("This design has no device %1; it has %2").arg(device).arg(devices());
  QString text = qs(designer::device_text(shown_.choice.mesh, shown_.layout, shown_.tensor, device));
  if (memory_.empty()) return text;
  const double share =
      memory_.size() == 1 ? memory_[0] : memory_.at(std::min<size_t>(static_cast<size_t>(device), memory_.size() - 1));
  return text % tr("; memory %1 %").arg(share * 100, 0, 'f', 0);
}

// --- Editing axes by mouse, wheel or keys: previews that are confirmed or cancelled ---

void MeshCanvas::connect_chip(AxisChip* c) {
  connect(c, &AxisChip::attention_changed, this, &MeshCanvas::redraw);
  if (editing_ == Editing::none) return;
  connect(c, &AxisChip::drag_started, this, [this, c](QPoint at) { begin_drag(c->axis(), at); });
  connect(c, &AxisChip::dragged, this, &MeshCanvas::drag);
  connect(c, &AxisChip::drag_ended, this, [this] {
    if (edit_mode_ == EditMode::mouse) commit();
  });
  connect(c, &AxisChip::stepped, this, [this, c](int by) { step(c->axis(), by, EditMode::keys); });
  connect(c, &AxisChip::wheel_stepped, this, [this, c](int by) { step(c->axis(), by, EditMode::wheel); });
  connect(c, &AxisChip::move_toggled, this,
          [this, c] { edit_mode_ == EditMode::moving ? commit() : begin_move(c->axis()); });
  connect(c, &AxisChip::place_stepped, this, [this](int by) {
    if (edit_mode_ == EditMode::moving) step_place(by);
  });
  connect(c, &AxisChip::confirmed, this, [this] {
    if (edit_mode_ != EditMode::none) commit();
  });
  connect(c, &AxisChip::cancelled, this, &MeshCanvas::cancel);
  connect(c, &AxisChip::focus_lost, this, [this] {
    if (edit_mode_ == EditMode::keys || edit_mode_ == EditMode::moving) cancel();
  });
  connect(c, &AxisChip::removed, this, [this, c] { remove(c->axis()); });
}

void MeshCanvas::begin_edit(const QString& axis, EditMode mode) {
  edit_mode_ = mode;
  edited_axis_ = axis;
}

// --- With the mouse ---

void MeshCanvas::begin_drag(const QString& axis, QPoint at) {
  cancel();
  edit_mode_ = EditMode::mouse;
  edited_axis_ = axis;
  drag_start_ = at;
  redraw();
}

void MeshCanvas::drag(QPoint at) {
  if (edit_mode_ != EditMode::mouse) return;
  if (const std::optional<Action> action = action_at(at))
    attempt(*action);
  else
    leave_preview();
  update();
}

// The action of a drop at this position.
std::optional<Action> MeshCanvas::action_at(QPoint at) const {
  const std::string axis = ss(edited_axis_);
  if (shown_.tensor)
    for (int d = 0; d < static_cast<int>(shown_.tensor->dims.size()); ++d)
      if (tensor_dimension_at(d).contains(at)) return Action{Action::Kind::shard, axis, d, tensor_};
  for (const designer::CanvasSide& s : shown_.picture.sides)
    if (side_at(s.dimension).contains(at)) return Action{Action::Kind::lay, axis, s.dimension};
  if (chips_.empty() || at.y() > chips_.front()->geometry().bottom() + kRowBelow) return {};
  const int moved = static_cast<int>(std::lround((at.x() - drag_start_.x()) / static_cast<double>(kStepPixels)));
  const std::vector<int> sizes = designer::size_steps(context_of(design_), given_.choice.mesh, axis);
  const auto now = std::find(sizes.begin(), sizes.end(), given_.choice.mesh.size(axis));
  const auto index =
      std::clamp<std::ptrdiff_t>(now - sizes.begin() + moved, 0, static_cast<std::ptrdiff_t>(sizes.size()) - 1);
  if (moved == 0 || sizes[static_cast<size_t>(index)] == *now) return {};
  return Action{Action::Kind::resize, axis, sizes[static_cast<size_t>(index)]};
}

// --- With the wheel and the keys ---

void MeshCanvas::step(const QString& axis, int by, EditMode mode) {
  if (edit_mode_ != mode || edited_axis_ != axis) cancel();
  begin_edit(axis, mode);
  const std::vector<int> sizes = designer::size_steps(context_of(design_), given_.choice.mesh, ss(axis));
  const int from =
      action_ && action_->kind == Action::Kind::resize ? action_->value : given_.choice.mesh.size(ss(axis));
  const auto at = std::find(sizes.begin(), sizes.end(), from) - sizes.begin();
  const auto next = std::clamp<std::ptrdiff_t>(at + by, 0, static_cast<std::ptrdiff_t>(sizes.size()) - 1);
  attempt({Action::Kind::resize, ss(axis), sizes[static_cast<size_t>(next)]});
  if (mode == EditMode::wheel) wheel_done_.start();
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

void MeshCanvas::begin_move(const QString& axis) {
  cancel();
  edit_mode_ = EditMode::moving;
  edited_axis_ = axis;
  place_index_ = -1;
  step_place(1);
}

void MeshCanvas::step_place(int by) {
  const std::vector<Action> places = places_for(edited_axis_);
  const int n = static_cast<int>(places.size());
  place_index_ = place_index_ < 0 ? (by > 0 ? 0 : n - 1) : (place_index_ + by + n) % n;
  attempt(places[static_cast<size_t>(place_index_)]);
}

void MeshCanvas::remove(const QString& axis) {
  cancel();
  const std::string name = ss(axis);
  const bool laid = std::any_of(given_.choice.places.begin(), given_.choice.places.end(),
                                [&](const mesh::RequestedPlacement& p) { return p.axis == name; });
  begin_edit(axis, EditMode::keys);
  attempt({laid ? Action::Kind::release : Action::Kind::remove, name, 0});
  commit();
}

void MeshCanvas::add_axis() {
  std::string name = "data";
  for (int i = 2; given_.choice.mesh.has(name); ++i) name = "axis" + std::to_string(i);
  cancel();
  begin_edit(qs(name), EditMode::keys);
  attempt({Action::Kind::add, name, 0});
  commit();
}

// --- One attempt ---

void MeshCanvas::attempt(const Action& action) {
  if (action_ && *action_ == action) return;
  if (!design_.inventory || !design_.placement) return;
  remove_values();
  action_ = action;
  outcome_ = outcome_of(action);
  message_.clear();
  preview_text_.clear();
  if (outcome_->accepted) {
    Scene scene;
    if (build(scene, outcome_->choice, outcome_->placement ? outcome_->placement : design_.placement))
      shown_ = std::move(scene);
    emit previewed(outcome_->choice, qs(outcome_->text));
  } else {
    shown_ = given_;
    message_ = qs(designer::refusal_text(*outcome_));
    if (action.kind == Action::Kind::resize && outcome_->other_sizes.empty())
      message_ += u'\n' % tr("no other size is possible");
    emit preview_ended();
    emit refused(message_);
  }
  show_scene();
  setAccessibleDescription(outcome_->accepted ? qs(outcome_->text) : message_);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
}

const designer::ActionResult& MeshCanvas::outcome_of(const Action& action) {
  const auto at =
      std::find_if(cached_results_.begin(), cached_results_.end(), [&](const auto& t) { return t.first == action; });
  if (at != cached_results_.end()) return at->second;
  cached_results_.emplace_back(action,
                               designer::try_action(context_of(design_), given_.choice, *design_.placement, action));
  return cached_results_.back().second;
}

// The axis is still edited, but not over a drop area.
void MeshCanvas::leave_preview() {
  if (!action_) return;
  action_.reset();
  outcome_.reset();
  message_.clear();
  preview_text_.clear();
  shown_ = given_;
  show_scene();
  emit preview_ended();
}

void MeshCanvas::commit() {
  wheel_done_.stop();
  edit_mode_ = EditMode::none;
  if (!action_ || !outcome_) return;
  if (!outcome_->accepted) return offer_values();
  const designer::ActionResult done = *outcome_;
  action_.reset();
  outcome_.reset();
  if (done.choice == given_.choice) {
    shown_ = given_;
    show_scene();
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
  cached_results_.clear();
}

// Keeps the refusal visible and offers the sizes nearest to the refused one as buttons in the row of the axes.
void MeshCanvas::offer_values() {
  constexpr size_t kMostValues = 3;
  std::vector<int> sizes = outcome_->other_sizes;
  const auto distance = [this](int n) { return std::abs(static_cast<long long>(n) - action_->value); };
  std::stable_sort(sizes.begin(), sizes.end(), [&](int a, int b) { return distance(a) < distance(b); });
  sizes.resize(std::min(sizes.size(), kMostValues));
  std::sort(sizes.begin(), sizes.end());
  const QString axis = qs(action_->axis);
  for (const int size : sizes) {
    auto* button = new QPushButton(axis % u' ' % QString::number(size), this);
    button->setAccessibleName(tr("Use %1").arg(button->text()));
    button->setToolTip(tr("Use this size instead"));
    // Later, because it removes the button that sends the signal.
    connect(
        button, &QPushButton::clicked, this, [this, axis, size] { use_value(axis, size); }, Qt::QueuedConnection);
    values_.push_back(button);
  }
  place_values();
  redraw();
}

void MeshCanvas::remove_values() {
  for (QPushButton* button : values_) {
    button->hide();
    button->deleteLater();
  }
  values_.clear();
}

// Shows the buttons that fit.
void MeshCanvas::place_values() {
  int left = add_->geometry().right() + 12;
  for (QPushButton* button : values_) {
    button->adjustSize();
    button->move(left, add_->y());
    left += button->width() + 6;
    button->setVisible(left < width());
  }
}

void MeshCanvas::use_value(const QString& axis, int size) {
  cancel();
  begin_edit(axis, EditMode::keys);
  attempt({Action::Kind::resize, ss(axis), size});
  commit();
}

void MeshCanvas::set_preview_text(const QString& text) {
  if (text == preview_text_) return;
  preview_text_ = text;
  update();
}

QString MeshCanvas::callout() const {
  if (!message_.isEmpty()) return QString(message_).replace(u"\n"_s, u"; "_s);
  if (!is_previewing()) return {};
  return qs(outcome_->text) % u'\n' % (preview_text_.isEmpty() ? u"\u2026"_s : preview_text_);
}

void MeshCanvas::cancel() {
  wheel_done_.stop();
  edit_mode_ = EditMode::none;
  remove_values();
  leave_preview();
  redraw();
}

}  // namespace mw::ui

#include "moc_mesh_canvas.cpp"
