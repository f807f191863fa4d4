// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/mesh_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPushButton>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kCanvasMargin = 8, kSide = 22;
constexpr double kMostPitch = 118;

}  // namespace

MeshCanvas::MeshCanvas(Editing editing, QWidget* parent)
    : QWidget(parent), editing_(editing), add_(new QToolButton(this)), fix_(new QPushButton(this)) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(editing_ == Editing::allowed ? tr("Mesh canvas") : tr("Pinned mesh canvas"));
  add_->setVisible(editing_ == Editing::allowed);
  add_->setText(u"+"_s);
  add_->setAccessibleName(tr("Add a mesh axis"));
  add_->setToolTip(tr("Add a mesh axis of one device"));
  connect(add_, &QToolButton::clicked, this, &MeshCanvas::add_axis);
  fix_->hide();
  connect(fix_, &QPushButton::clicked, this, [this] {
    if (!outcome_ || !outcome_->nearest) return;
    const designer::MeshDesign choice = *outcome_->nearest;
    const QString text = fix_->text();
    const bool same = choice == given_.choice;
    cancel();
    if (!same) emit dropped(choice, text);
  });
  wheel_done_.setSingleShot(true);
  wheel_done_.setInterval(450);
  connect(&wheel_done_, &QTimer::timeout, this, [this] {
    if (hold_ == Hold::wheel) commit();
  });
}

// During destruction a chip loses the focus and would notify the destroyed canvas.
MeshCanvas::~MeshCanvas() {
  for (AxisChip* chip : chips_) chip->disconnect(this);
}

void MeshCanvas::set_design(CanvasDesign design) {
  design_ = std::move(design);
  tried_.clear();
  hold_ = Hold::none;
  action_.reset();
  outcome_.reset();
  fix_->hide();
  show_given();
}

void MeshCanvas::show_given() {
  message_.clear();
  given_ = {};
  drawable_ = design_.inventory && design_.placement && build(given_, design_.choice, design_.placement);
  if (!drawable_) given_.choice = design_.choice;
  shown_ = given_;
  add_->setEnabled(design_.inventory != nullptr);
  show_chips();
  place_all();
  setAccessibleDescription(summary());
  redraw();
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
    message_ = qs(error.what());
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
  select_tensor(given_);
  select_tensor(shown_);
  place_all();
  setAccessibleDescription(summary());
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
  select_tensor(given_);
  select_tensor(shown_);
  place_all();
  redraw();
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
            (t->shards == 1 ? tr("replicated on all devices") : tr("%1 pieces").arg(t->shards));
  else if (!tensor_.empty())
    text += u"; "_s % tr("this design has no %1").arg(qs(tensor_));
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
    if (action_ && action_->kind == designer::Action::Kind::resize && action_->axis == axes[i].name)
      size = action_->value;
    chips_[i]->show_axis(qs(axes[i].name), size, place, axis_color(qs(axes[i].name)));
    const bool held = action_ && action_->axis == axes[i].name && outcome_;
    chips_[i]->show_state(held && outcome_->accepted, held && !outcome_->accepted);
  }
}

AxisChip* MeshCanvas::chip(const QString& axis) const {
  for (AxisChip* c : chips_)
    if (c->axis() == axis) return c;
  return nullptr;
}

QColor MeshCanvas::axis_color(const QString& axis) const {
  const auto& axes = design_.choice.mesh.axes;
  for (size_t i = 0; i < axes.size(); ++i)
    if (qs(axes[i].name) == axis) return theme().series(static_cast<int>(axes.size() - 1 - i));
  return theme().series(7);
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
  add_->setGeometry(x, kCanvasMargin, row, row);
  const double top = kCanvasMargin + row + 6, bottom = height() - status_height();
  const double wide = beside() ? std::clamp(width() * 0.34, 190.0, 300.0) : 0;
  const double most = std::max(90.0, (bottom - top) * 0.45);
  const double high = beside() ? 0 : short_of_height() ? 20 : std::clamp(tensor_height(), 90.0, most);
  tensor_area_ = beside() ? QRectF(width() - wide, top, wide - kCanvasMargin, bottom - top)
                          : QRectF(kCanvasMargin, bottom - high, width() - 2 * kCanvasMargin, high);
  grid_area_ = QRectF(kCanvasMargin + kSide, top + kSide, width() - 2 * kCanvasMargin - kSide - wide,
                      bottom - top - kSide - high);
  for (const designer::CanvasSide& s : shown_.picture.sides)
    if (s.where == designer::CanvasSide::Where::layers || s.where == designer::CanvasSide::Where::chip)
      grid_area_.setHeight(grid_area_.height() - kSide);
  const designer::CanvasPicture& p = shown_.picture;
  if (p.width <= 0 || p.height <= 0) return;
  pitch_ = std::max(1.0, std::min({grid_area_.width() / p.width, grid_area_.height() / p.height, kMostPitch}));
  origin_ = grid_area_.center() - QPointF(p.width, p.height) * pitch_ / 2;
  fix_->adjustSize();
  fix_->move(static_cast<int>(grid_area_.left()), static_cast<int>(bottom) - fix_->height() - 4);
}

bool MeshCanvas::beside() const {
  return width() > 520;
}

double MeshCanvas::status_height() const {
  return beside() ? 20 : 34;  // two lines if they are short
}

// Name, dimensions, then one line for the shards, each axis and each collective.
double MeshCanvas::tensor_height() const {
  if (!shown_.tensor) return 20;
  const auto sums = std::count_if(traffic_.begin(), traffic_.end(), [](const auto& t) { return !t.label.isEmpty(); });
  return 73 + 16 * (1 + static_cast<double>(sums) + static_cast<double>(traffic_.size())) + 4;
}

bool MeshCanvas::short_of_height() const {
  constexpr int kLeast = 250;
  return !beside() && height() < kLeast;
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
    const bool under = s.where == designer::CanvasSide::Where::layers || s.where == designer::CanvasSide::Where::chip;
    if (s.dimension != dimension) {
      if (under) below += kSide;
      continue;
    }
    if (s.where == designer::CanvasSide::Where::left) return {origin_.x() - kSide, origin_.y(), kSide - 4.0, height};
    const double wide = std::max(width, 150.0), x = origin_.x() + (width - wide) / 2;
    if (under) return {x, below, wide, kSide - 4.0};
    return {x, origin_.y() - kSide, wide, kSide - 4.0};
  }
  return {};
}

QRectF MeshCanvas::tensor_dimension_at(int index) const {
  const mesh::PlacedTensor* t = shown_.tensor;
  if (!t || short_of_height() || index < 0 || index >= static_cast<int>(t->dims.size())) return {};
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

// The tooltip lists all traffic, which may not fit.
bool MeshCanvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  auto* help = static_cast<QHelpEvent*>(event);
  QStringList lines;
  if (tensor_area_.contains(help->pos()))
    for (const CanvasTraffic& t : traffic_) lines << t.text;
  QToolTip::showText(help->globalPos(), lines.join(u'\n'), this);
  return true;
}

void MeshCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) {
    show_chips();
    place_all();
    redraw();
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
  if (hold_ != Hold::none && outcome_) return outcome_->accepted ? qs(outcome_->text) : QString();
  const int device = hovered_ >= 0 ? hovered_ : selected_;
  if (device < 0 || !drawable_) return {};
  if (device >= devices()) return tr("This design has no device %1; it has %2").arg(device).arg(devices());
  QString text = qs(designer::device_text(shown_.choice.mesh, shown_.layout, shown_.tensor, device));
  if (memory_.empty()) return text;
  const double share =
      memory_.size() == 1 ? memory_[0] : memory_.at(std::min<size_t>(static_cast<size_t>(device), memory_.size() - 1));
  return text % tr("; memory %1 %").arg(share * 100, 0, 'f', 0);
}

}  // namespace mw::ui
