// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/mesh_canvas.h"

#include <QPainter>
#include <algorithm>

namespace mw::ui {

using designer::Action;
using Mode = AxisEdit::Mode;

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
  connect_edit();
}

// During destruction a chip loses the focus and would notify the destroyed canvas.
MeshCanvas::~MeshCanvas() {
  for (AxisChip* chip : chips_) chip->disconnect(this);
}

void MeshCanvas::set_design(CanvasDesign design) {
  state_.design = std::move(design);
  edit_.reset();
  remove_values();
  show_given();
}

void MeshCanvas::show_given() {
  const CanvasDesign& design = state_.design;
  state_.message.clear();
  state_.given = {};
  state_.drawable = design.inventory && design.placement && make_scene(design.choice, design.placement, state_.given);
  if (!state_.drawable) state_.given.choice = design.choice;
  state_.shown = state_.given;
  add_->setEnabled(design.inventory != nullptr);
  show_scene();
  setAccessibleDescription(summary());
}

// Returns false if the mesh does not fit its target; then only the axes are shown.
bool MeshCanvas::make_scene(const designer::MeshDesign& choice, std::shared_ptr<const mesh::Placement> placement,
                            MeshScene& scene) {
  try {
    scene = state_.scene(choice, std::move(placement));
    return true;
  } catch (const Error& error) {
    state_.message = qs(error.problem().message);
    return false;
  }
}

void MeshCanvas::set_tensor(const std::string& name) {
  state_.tensor = name;
  show_tensor();
  setAccessibleDescription(summary());
}

void MeshCanvas::show_tensor() {
  state_.select_tensor(state_.given);
  state_.select_tensor(state_.shown);
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
  if (shares == state_.memory) return;
  state_.memory = std::move(shares);
  redraw();
}

void MeshCanvas::set_traffic(std::vector<CanvasTraffic> traffic) {
  if (traffic == state_.traffic) return;
  state_.traffic = std::move(traffic);
  show_tensor();
}

void MeshCanvas::select_device(int device) {
  if (device == state_.selected) return;
  state_.selected = device;
  setAccessibleDescription(device < 0 ? summary() : status());
  update();
}

// One chip per axis of the shown mesh.
void MeshCanvas::show_chips() {
  const MeshScene& scene = state_.shown;
  const auto& axes = scene.choice.mesh.axes;
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
  const bool placed = scene.layout.axes.size() == axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    const QString place = placed ? qs(designer::placement_text(scene.layout.axes[i], scene.picture)) : QString();
    const auto& action = edit_.action();
    const bool edited = action && action->axis == axes[i].name;
    // Shows the requested size even if it is refused.
    const int size = edited && action->kind == Action::Kind::resize ? action->value : axes[i].size;
    chips_[i]->show_axis(qs(axes[i].name), size, place, axis_color(qs(axes[i].name)));
    chips_[i]->show_state(edited && edit_.is_accepted(), edited && edit_.outcome() && !edit_.is_accepted());
  }
}

AxisChip* MeshCanvas::chip(const QString& axis) const {
  const auto found = std::ranges::find(chips_, axis, &AxisChip::axis);
  return found == chips_.end() ? nullptr : *found;
}

// The axes, the button that adds one, and the values that fit beside it are the first row.
void MeshCanvas::place_all() {
  constexpr int kMargin = CanvasGeometry::kMargin;
  int x = kMargin, row = 0;
  for (AxisChip* c : chips_) {
    const QSize size = c->sizeHint();
    c->setGeometry(x, kMargin, size.width(), size.height());
    x += size.width() + 6;
    row = std::max(row, size.height());
  }
  row = std::max(row, add_->sizeHint().height());
  add_->setGeometry(x, kMargin, std::max(row, add_->sizeHint().width()), row);
  int left = add_->geometry().right() + 12;
  for (QPushButton* button : values_) {
    button->adjustSize();
    button->move(left, add_->y());
    left += button->width() + 6;
    button->setVisible(left < width());
  }
  geometry_.fit(size(), kMargin + row);
}

// --- Looking around ---

// Everything except hover and selection is cached as a picture.
void MeshCanvas::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  if (still_.size() != size() * ratio) {
    still_ = QPixmap(size() * ratio);
    still_.setDevicePixelRatio(ratio);
    stale_ = true;
  }
  if (std::exchange(stale_, false)) {
    QPainter still(&still_);
    QStringList lit;
    for (const AxisChip* c : chips_)
      if (c->has_attention()) lit << c->axis();
    painter_.paint_still(still, caption_room(), lit);
  }
  QPainter p(this);
  p.drawPixmap(0, 0, still_);
  p.setFont(small_font());
  if (state_.drawable) painter_.paint_selection(p);
  const AxisChip* edited = chip(edit_.axis());
  painter_.paint_callout(p, callout(), edited ? edited->geometry() : QRect(), editing_);
  if (hasFocus()) paint_focus(p, rect());
}

// Behind the axes; empty while values are offered there.
QRectF MeshCanvas::caption_room() const {
  if (!values_.empty()) return {};
  const double after = editing_ == Editing::allowed ? add_->geometry().right() + 12 : add_->x() + 6;
  return {after, 1.0 * add_->y(), width() - after - 8, 1.0 * add_->height()};
}

void MeshCanvas::resizeEvent(QResizeEvent*) {
  place_all();
  redraw();
}

// The tooltip shows all of what may not fit: the traffic and the callout.
bool MeshCanvas::event(QEvent* event) {
  const auto traffic_at = [this](QPoint at) {
    QStringList lines;
    if (geometry_.callout().contains(at)) return callout();
    if (geometry_.tensor().contains(at))
      for (const CanvasTraffic& t : state_.traffic) lines << t.text;
    return lines.join(u'\n');
  };
  return show_tooltip(event, *this, traffic_at) || QWidget::event(event);
}

void MeshCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) show_scene();
  QWidget::changeEvent(event);
}

void MeshCanvas::mouseMoveEvent(QMouseEvent* event) {
  const int under = geometry_.device_under(event->position());
  if (std::exchange(state_.hovered, under) != under) update();
}

void MeshCanvas::mousePressEvent(QMouseEvent* event) {
  choose(geometry_.device_under(event->position()));
}

void MeshCanvas::leaveEvent(QEvent*) {
  state_.hovered = -1;
  update();
}

void MeshCanvas::keyPressEvent(QKeyEvent* event) {
  const auto move = [this](int dx, int dy) {
    if (devices() > 0) choose(geometry_.device_beside(state_.selected, dx, dy));
  };
  switch (event->key()) {
    case Qt::Key_Left:
      return move(-1, 0);
    case Qt::Key_Right:
      return move(1, 0);
    case Qt::Key_Up:
      return move(0, -1);
    case Qt::Key_Down:
      return move(0, 1);
    case Qt::Key_Escape:
      return edit_.cancel();
    default:
      QWidget::keyPressEvent(event);
  }
}

void MeshCanvas::choose(int device) {
  select_device(device);
  emit device_selected(device);
}

// --- Editing axes: previews that are confirmed or cancelled ---

void MeshCanvas::connect_chip(AxisChip* c) {
  connect(c, &AxisChip::attention_changed, this, &MeshCanvas::redraw);
  if (editing_ == Editing::none) return;
  connect(c, &AxisChip::drag_started, this, [this, c](QPoint at) { edit_.begin_drag(c->axis(), at); });
  connect(c, &AxisChip::dragged, this, [this](QPoint at) {
    edit_.drag(at, chips_.front()->geometry().bottom());
    update();
  });
  connect(c, &AxisChip::drag_ended, this, [this] {
    if (edit_.mode() == Mode::mouse) edit_.commit();
  });
  connect(c, &AxisChip::stepped, this, [this, c](int by) { edit_.step(c->axis(), by, Mode::keys); });
  connect(c, &AxisChip::wheel_stepped, this, [this, c](int by) { edit_.step(c->axis(), by, Mode::wheel); });
  connect(c, &AxisChip::move_toggled, this,
          [this, c] { edit_.mode() == Mode::moving ? edit_.commit() : edit_.begin_move(c->axis()); });
  connect(c, &AxisChip::place_stepped, this, [this](int by) {
    if (edit_.mode() == Mode::moving) edit_.step_place(by);
  });
  connect(c, &AxisChip::confirmed, this, [this] {
    if (is_editing()) edit_.commit();
  });
  connect(c, &AxisChip::cancelled, &edit_, &AxisEdit::cancel);
  connect(c, &AxisChip::focus_lost, this, [this] {
    if (edit_.mode() == Mode::keys || edit_.mode() == Mode::moving) edit_.cancel();
  });
  connect(c, &AxisChip::removed, this, [this, c] { edit_.remove(c->axis()); });
}

void MeshCanvas::connect_edit() {
  connect(add_, &QToolButton::clicked, &edit_, &AxisEdit::add_axis);
  connect(&edit_, &AxisEdit::started, this, &MeshCanvas::redraw);
  connect(&edit_, &AxisEdit::attempted, this, &MeshCanvas::show_attempt);
  connect(&edit_, &AxisEdit::left, this, &MeshCanvas::end_preview);
  connect(&edit_, &AxisEdit::kept, this, &MeshCanvas::end_preview);
  connect(&edit_, &AxisEdit::committed, this, &MeshCanvas::keep);
  connect(&edit_, &AxisEdit::refused, this, &MeshCanvas::offer_values);
  connect(&edit_, &AxisEdit::cancelled, this, [this] {
    remove_values();
    redraw();
  });
}

void MeshCanvas::show_attempt() {
  const designer::ActionResult& outcome = *edit_.outcome();
  remove_values();
  state_.message.clear();
  preview_text_.clear();
  if (outcome.accepted) {
    MeshScene scene;
    if (make_scene(outcome.choice, outcome.placement ? outcome.placement : state_.design.placement, scene))
      state_.shown = std::move(scene);
    emit previewed(outcome.choice, qs(outcome.text));
  } else {
    state_.shown = state_.given;
    state_.message = qs(designer::refusal_text(outcome));
    if (edit_.action()->kind == Action::Kind::resize && outcome.other_sizes.empty())
      state_.message += u'\n' % tr("no other size is possible");
    emit preview_ended();
    emit refused(state_.message);
  }
  show_scene();
  setAccessibleDescription(outcome.accepted ? qs(outcome.text) : state_.message);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
}

void MeshCanvas::end_preview() {
  state_.message.clear();
  preview_text_.clear();
  state_.shown = state_.given;
  show_scene();
  emit preview_ended();
}

void MeshCanvas::keep(const designer::ActionResult& done) {
  show_chips();
  redraw();
  emit dropped(done.choice, qs(done.text));
  // The next action starts from this design, although its prediction has not arrived yet.
  state_.design.choice = done.choice;
  if (done.placement) state_.design.placement = done.placement;
  state_.given = state_.shown;
}

// Keeps the refusal visible and offers the sizes nearest to the refused one as buttons in the row of the axes.
void MeshCanvas::offer_values() {
  constexpr size_t kMostValues = 3;
  std::vector<int> sizes = edit_.outcome()->other_sizes;
  const auto distance = [wanted = edit_.action()->value](int n) {
    return std::abs(static_cast<long long>(n) - wanted);
  };
  std::stable_sort(sizes.begin(), sizes.end(), [&](int a, int b) { return distance(a) < distance(b); });
  sizes.resize(std::min(sizes.size(), kMostValues));
  std::sort(sizes.begin(), sizes.end());
  const QString axis = qs(edit_.action()->axis);
  for (const int size : sizes) {
    auto* button = new QPushButton(axis % u' ' % QString::number(size), this);
    button->setAccessibleName(tr("Use %1").arg(button->text()));
    button->setToolTip(tr("Use this size instead"));
    // Later, because it removes the button that sends the signal.
    connect(
        button, &QPushButton::clicked, &edit_, [this, axis, size] { edit_.use_value(axis, size); },
        Qt::QueuedConnection);
    values_.push_back(button);
  }
  place_all();
  redraw();
}

void MeshCanvas::remove_values() {
  for (QPushButton* button : values_) {
    button->hide();
    button->deleteLater();
  }
  values_.clear();
}

void MeshCanvas::set_preview_text(const QString& text) {
  if (text == preview_text_) return;
  preview_text_ = text;
  update();
}

QString MeshCanvas::callout() const {
  if (!message().isEmpty()) return QString(message()).replace(u"\n"_s, u"; "_s);
  if (!is_previewing()) return {};
  return qs(edit_.outcome()->text) % u'\n' % (preview_text_.isEmpty() ? u"\u2026"_s : preview_text_);
}

}  // namespace mw::ui

#include "moc_mesh_canvas.cpp"
