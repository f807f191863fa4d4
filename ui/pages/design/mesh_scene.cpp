// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/mesh_scene.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "ui/pages/design/mesh_canvas.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kSide = 22, kPointer = 6;
constexpr double kMostPitch = 200;

// Whether the side is a line below the grid.
bool is_below(const designer::CanvasSide& side) {
  using Where = designer::CanvasSide::Where;
  return side.where == Where::layers || side.where == Where::network || side.where == Where::chip;
}

}  // namespace

MeshScene CanvasState::scene(const designer::MeshDesign& choice, std::shared_ptr<const mesh::Placement> placed) const {
  MeshScene made;
  made.layout = mesh::lay_out(choice.mesh, design.target, choice.places);
  made.choice = choice;
  made.placement = std::move(placed);
  made.picture = designer::canvas_picture(design.target, made.layout);
  select_tensor(made);
  return made;
}

void CanvasState::select_tensor(MeshScene& scene) const {
  scene.tensor = scene.placement ? mesh::find_tensor(*scene.placement, tensor) : nullptr;
  scene.pieces.clear();
  if (scene.tensor) scene.pieces = designer::piece_areas(*scene.tensor, scene.choice.mesh, scene.layout);
  scene.edges.clear();
  for (const CanvasTraffic& t : traffic)
    scene.edges.push_back(designer::axis_edges(scene.choice.mesh, scene.layout, ss(t.axis)));
}

QString CanvasState::summary() const {
  QString text = design.caption % u": "_s % qs(mesh::to_text(shown.choice.mesh));
  if (const mesh::PlacedTensor* t = shown.tensor)
    text += u"; "_s % qs(t->name) % u' ' % qs(mesh::to_text(t->spec)) % u", "_s %
            (t->shards == 1 ? MeshCanvas::tr("replicated on all devices")
                            : MeshCanvas::tr("%n piece(s)", nullptr, t->shards));
  else if (!tensor.empty())
    text += u"; "_s % MeshCanvas::tr("this design has no tensor %1").arg(qs(tensor));
  for (const std::string& axis : shown.picture.network_axes)
    text += u"; "_s % MeshCanvas::tr("%1 crosses the network").arg(qs(axis));
  for (const CanvasTraffic& t : traffic) text += u"; "_s % t.text;
  return message.isEmpty() ? text : text % u". "_s % message;
}

QString CanvasState::status() const {
  const int device = hovered >= 0 ? hovered : selected;
  if (device < 0 || !drawable) return {};
  if (device >= devices()) return MeshCanvas::tr("This design has no device %1; it has %2").arg(device).arg(devices());
  QString text = qs(designer::device_text(shown.choice.mesh, shown.layout, shown.tensor, device));
  if (memory.empty()) return text;
  const double share =
      memory.size() == 1 ? memory[0] : memory.at(std::min<size_t>(static_cast<size_t>(device), memory.size() - 1));
  return text % MeshCanvas::tr("; memory %1 %").arg(share * 100, 0, 'f', 0);
}

void CanvasGeometry::fit(QSizeF size, double row_bottom) {
  size_ = size;
  callout_ =
      QRectF(kMargin, row_bottom + kPointer, size_.width() - 2 * kMargin, 2 * QFontMetrics(small_font()).height() + 6);
  const double top = callout_.bottom() + 4, bottom = size_.height() - kMargin;
  const double wide = shows_tensor_beside() ? std::clamp(size_.width() * 0.42, 190.0, 340.0) : 0;
  const double most = std::max(90.0, (bottom - top) * 0.45);
  const double high = shows_tensor_beside() ? 0 : lacks_height() ? 20 : std::clamp(tensor_height(), 90.0, most);
  tensor_ = shows_tensor_beside() ? QRectF(size_.width() - wide, top, wide - kMargin, bottom - top)
                                  : QRectF(kMargin, bottom - high, size_.width() - 2 * kMargin, high);
  QRectF grid(kMargin + kSide, top + kSide, size_.width() - 2 * kMargin - kSide - wide, bottom - top - kSide - high);
  for (const designer::CanvasSide& s : state_.shown.picture.sides)
    if (is_below(s)) grid.setHeight(grid.height() - kSide);
  const designer::CanvasPicture& p = state_.shown.picture;
  if (p.width <= 0 || p.height <= 0) return;
  pitch_ = std::max(1.0, std::min({grid.width() / p.width, grid.height() / p.height, kMostPitch}));
  origin_ = grid.center() - QPointF(p.width, p.height) * pitch_ / 2;
}

// Name, dimensions, then one line for the shards, each axis and each collective.
double CanvasGeometry::tensor_height() const {
  if (!state_.shown.tensor) return 20;
  const auto sums =
      std::count_if(state_.traffic.begin(), state_.traffic.end(), [](const auto& t) { return !t.label.isEmpty(); });
  return 73 + 16 * (1 + static_cast<double>(sums) + static_cast<double>(state_.traffic.size())) + 4;
}

bool CanvasGeometry::lacks_height() const {
  constexpr int kLeast = 250;
  return !shows_tensor_beside() && size_.height() < kLeast;
}

QRectF CanvasGeometry::to_pixels(const designer::Box& box) const {
  return {origin_.x() + box.x * pitch_, origin_.y() + box.y * pitch_, box.width * pitch_, box.height * pitch_};
}

QRectF CanvasGeometry::device_at(int device) const {
  const auto& devices = state_.shown.picture.devices;
  if (device < 0 || device >= static_cast<int>(devices.size())) return {};
  return to_pixels(devices[static_cast<size_t>(device)].at);
}

QRectF CanvasGeometry::side_at(int dimension) const {
  const double width = state_.shown.picture.width * pitch_, height = state_.shown.picture.height * pitch_;
  double below = origin_.y() + height + 3;
  for (const designer::CanvasSide& s : state_.shown.picture.sides) {
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

QRectF CanvasGeometry::tensor_dimension_at(int index) const {
  const mesh::PlacedTensor* t = state_.shown.tensor;
  if (!t || lacks_height() || index < 0 || index >= static_cast<int>(t->dims.size())) return {};
  const double n = static_cast<double>(t->dims.size());
  const double width = std::min(110.0, (tensor_.width() - 6 * (n - 1)) / n);
  return {tensor_.left() + index * (width + 6), tensor_.top() + 24, width, 44};
}

int CanvasGeometry::device_under(QPointF at) const {
  for (size_t d = 0; d < state_.shown.picture.devices.size(); ++d)
    if (device_at(static_cast<int>(d)).contains(at)) return static_cast<int>(d);
  return -1;
}

int CanvasGeometry::device_beside(int device, int dx, int dy) const {
  if (device < 0 || device >= state_.devices()) return 0;
  const QPointF from = center_of(device);
  int next = device;
  double best = 1e18;
  for (int d = 0; d < state_.devices(); ++d) {
    const QPointF way = center_of(d) - from;
    const double along = way.x() * dx + way.y() * dy, aside = std::abs(way.x() * dy) + std::abs(way.y() * dx);
    if (along < 1 || along + 4 * aside >= best) continue;
    best = along + 4 * aside;
    next = d;
  }
  return next;
}

}  // namespace mw::ui
