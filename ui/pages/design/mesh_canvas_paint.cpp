// SPDX-License-Identifier: GPL-3.0-or-later
#include <QPainter>
#include <QToolButton>
#include <cmath>

#include "ui/pages/design/mesh_canvas.h"
#include "ui/theme/axis_color.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

using designer::Action;
using designer::Box;

constexpr double kRoomy = 26;   // width of a device in pixels from which its piece is drawn to scale
constexpr double kFine = 30;    // pitch below which lines are plain, because there are many
constexpr double kLabels = 90;  // pitch from which links have labels
constexpr int kCrowd = 64;      // devices above which straight lines are not antialiased

// Eight colours, then paler variants, so that adjacent pieces always differ.
QColor piece_color(std::int64_t index) {
  const Theme& t = theme();
  const double pale = 0.24 * static_cast<double>(index / 8 % 3);
  return mix(t.series(static_cast<int>(index % 8)), t.panel, pale);
}

QString times(const std::vector<std::int64_t>& sizes) {
  QStringList parts;
  for (const std::int64_t n : sizes) parts << QString::number(n);
  return parts.join(u" x "_s);
}

}  // namespace

// Everything except hover and selection is cached as a picture.
void MeshCanvas::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  if (still_.size() != size() * ratio) {
    still_ = QPixmap(size() * ratio);
    still_.setDevicePixelRatio(ratio);
    stale_ = true;
  }
  if (stale_) {
    QPainter still(&still_);
    paint_still(still);
    stale_ = false;
  }
  QPainter p(this);
  p.drawPixmap(0, 0, still_);
  p.setFont(small_font());
  if (drawable_) paint_selection(p);
  paint_callout(p);
  if (hasFocus()) paint_focus(p, rect());
}

void MeshCanvas::paint_still(QPainter& p) const {
  const Theme& t = theme();
  p.fillRect(rect(), t.panel);
  p.setFont(small_font());
  const double after = editing_ == Editing::allowed ? add_->geometry().right() + 12 : add_->x() + 6;
  const QRectF rest(after, add_->y(), width() - after - 8, add_->height());
  if (values_.empty() && p.fontMetrics().horizontalAdvance(design_.caption) <= rest.width())
    draw_elided(p, rest, Qt::AlignVCenter | Qt::AlignRight, design_.caption, t.muted);
  if (!drawable_) return;
  paint_sides(p);
  p.setRenderHint(QPainter::Antialiasing, pitch_ >= kFine && devices() <= kCrowd);
  paint_network(p);
  paint_links(p);
  paint_edges(p);
  paint_chips(p);
  p.setRenderHint(QPainter::Antialiasing);
  paint_labels(p);
  paint_tensor(p);
}

void MeshCanvas::paint_selection(QPainter& p) const {
  for (const int d : {selected_, hovered_}) {
    if (d < 0 || d >= devices()) continue;
    p.setPen(QPen(theme().accent, d == selected_ ? 2.5 : 1.5));
    p.drawRect(device_at(d));
  }
}

// --- Sides of the grid ---

void MeshCanvas::paint_sides(QPainter& p) const {
  const Theme& t = theme();
  const bool editing = edit_mode_ == EditMode::mouse || edit_mode_ == EditMode::moving;
  for (const designer::CanvasSide& s : shown_.picture.sides) {
    const QRectF box = side_at(s.dimension);
    const bool aimed = action_ && action_->kind == Action::Kind::lay && action_->value == s.dimension;
    const QColor edge = !aimed ? (editing ? t.accent : t.line) : outcome_ && outcome_->accepted ? t.good : t.bad;
    p.setPen(QPen(edge, 1, editing ? Qt::DashLine : Qt::SolidLine));
    p.setBrush(aimed ? mix(t.panel, edge, 0.25) : mix(t.panel, t.text, 0.03));
    p.drawRect(box);
    QString text = qs(s.name) % u' ' % QString::number(s.size);
    if (s.where == designer::CanvasSide::Where::network) text = tr("%1 over the network").arg(text);
    for (size_t i = 0; i < s.axes.size(); ++i) text += (i ? u", "_s : u": "_s) % qs(s.axes[i]);
    p.save();
    QRectF inside = box;
    if (s.where == designer::CanvasSide::Where::left) {
      p.translate(box.center());
      p.rotate(-90);
      inside = QRectF(-box.height() / 2, -box.width() / 2, box.height(), box.width());
    }
    draw_elided(p, inside, Qt::AlignCenter, text, s.axes.empty() ? t.muted : axis_text_color(qs(s.axes.back())));
    p.restore();
  }
}

// --- Slices and nodes ---

// Frames and the lines between them, striped in the colours of the axes that communicate over the network.
void MeshCanvas::paint_network(QPainter& p) const {
  const Theme& t = theme();
  const designer::CanvasPicture& picture = shown_.picture;
  const auto box_of = [&](int group) { return to_pixels(picture.groups[static_cast<size_t>(group)].at); };
  const size_t stripes = std::max<size_t>(1, picture.network_axes.size());
  const double width = pitch_ > 40 ? 6 : pitch_ >= 12 ? 4 : 2;
  for (const designer::CanvasNetworkLine& line : picture.network) {
    const QRectF a = box_of(line.a), b = box_of(line.b);
    const bool level = std::abs(a.top() - b.top()) < 1;
    QLineF middle(level ? QPointF(a.right(), a.center().y()) : QPointF(a.center().x(), a.bottom()),
                  level ? QPointF(b.left(), b.center().y()) : QPointF(b.center().x(), b.top()));
    for (size_t i = 0; i < stripes; ++i) {
      const QColor color = picture.network_axes.empty() ? t.line : axis_color(qs(picture.network_axes[i]));
      const double aside = (static_cast<double>(i) - static_cast<double>(stripes - 1) / 2) * width;
      p.setPen(QPen(color, width, Qt::SolidLine, Qt::FlatCap));
      p.drawLine(middle.translated(level ? QPointF(0, aside) : QPointF(aside, 0)));
    }
  }
  p.setBrush(Qt::NoBrush);
  for (const designer::CanvasGroup& group : picture.groups) {
    const QRectF box = to_pixels(group.at);
    p.setPen(QPen(mix(t.panel, t.text, 0.3), 1));
    p.drawRect(box);
    const double head = 0.35 * pitch_;
    if (head >= 12)
      draw_elided(p, QRectF(box.left() + 4, box.top(), box.width() - 8, head), Qt::AlignVCenter, qs(group.name),
                  t.muted);
  }
}

// --- Chips and links ---

void MeshCanvas::paint_links(QPainter& p) const {
  const Theme& t = theme();
  p.setPen(QPen(mix(t.panel, t.text, 0.28), pitch_ > kFine ? 2 : 1));
  p.setBrush(Qt::NoBrush);
  int layers = -1;
  for (const designer::CanvasSide& s : shown_.picture.sides)
    if (s.where == designer::CanvasSide::Where::layers) layers = s.dimension;
  QVector<QLineF> lines;
  for (const designer::CanvasLink& l : shown_.picture.links) {
    if (l.dimension == layers) continue;  // links between layers are drawn only if an axis uses them
    const QPointF a = to_pixels(shown_.picture.chips[static_cast<size_t>(l.a)].at).center();
    const QPointF b = to_pixels(shown_.picture.chips[static_cast<size_t>(l.b)].at).center();
    if (!l.wrap) {
      lines << QLineF(a, b);
      continue;
    }
    // A wraparound link is drawn as a stub at both ends.
    const QPointF out = (a - b) / std::max(1.0, std::hypot(a.x() - b.x(), a.y() - b.y())) * pitch_ * 0.56;
    lines << QLineF(a, a + out) << QLineF(b, b - out);
  }
  p.drawLines(lines);
  for (const designer::CanvasSwitch& s : shown_.picture.switches) {
    const QRectF bar = to_pixels(s.at);
    for (const int c : s.chips) {
      const QPointF from = to_pixels(shown_.picture.chips[static_cast<size_t>(c)].at).center();
      p.drawLine(from, QPointF(from.x(), bar.center().y()));
    }
    p.fillRect(bar, mix(t.panel, t.text, 0.28));
    if (pitch_ > 40) draw_elided(p, bar, Qt::AlignCenter, qs(s.name), t.text);
    p.setPen(QPen(mix(t.panel, t.text, 0.28), 2));
  }
}

void MeshCanvas::paint_chips(QPainter& p) const {
  const Theme& t = theme();
  const QColor ground = mix(t.panel, t.text, 0.05), edge = mix(t.panel, t.text, 0.3);
  p.setRenderHint(QPainter::Antialiasing, false);  // boxes are sharper without it
  for (const designer::CanvasChip& c : shown_.picture.chips) {
    const QRectF box = to_pixels(c.at);
    p.fillRect(box, ground);
    for (const int d : c.devices) paint_device(p, d);
    p.setPen(QPen(edge, 1));
    p.setBrush(Qt::NoBrush);
    p.drawRect(box);
  }
}

void MeshCanvas::paint_device(QPainter& p, int device) const {
  const Theme& t = theme();
  const QRectF box = device_at(device);
  const size_t i = static_cast<size_t>(device);
  const double bar = memory_.empty() ? 0 : std::clamp(box.height() * 0.13, 2.0, 9.0);
  const bool is_labelled = box.width() > 44;
  if (i < shown_.pieces.size()) {
    const designer::PieceArea& v = shown_.pieces[i];
    const QColor color = v.index < 0 ? mix(t.panel, t.text, 0.1) : piece_color(v.index);
    if (box.width() < kRoomy) {
      p.fillRect(box.adjusted(1, 1, -1, -1 - bar), color);
    } else {
      const double top = std::max(box.height() * 0.14, is_labelled ? 15.0 : 0.0);
      const QRectF mini = box.adjusted(box.width() * 0.16, top, -box.width() * 0.16, -box.height() * 0.14 - bar);
      p.fillRect(mini, mix(t.panel, t.text, 0.13));
      p.fillRect(
          QRectF(mini.left() + v.left * mini.width(), mini.top() + v.top * mini.height(),
                 std::max(2.0, (v.right - v.left) * mini.width()), std::max(2.0, (v.bottom - v.top) * mini.height())),
          color);
      if (is_labelled && v.index >= 0)
        draw_elided(p, QRectF(box.left() + 3, box.top() + 1, box.width() - 6, 14), Qt::AlignRight | Qt::AlignTop,
                    QString::number(v.index + 1), t.muted);
    }
  }
  if (is_labelled)
    draw_elided(p, QRectF(box.left() + 3, box.top() + 1, box.width() - 6, 14), Qt::AlignLeft | Qt::AlignTop,
                QString::number(device), t.text);
  if (memory_.empty()) return;
  const double share = memory_[std::min(i, memory_.size() - 1)];
  const QRectF rail(box.left() + 1, box.bottom() - bar, box.width() - 2, bar - 1);
  p.fillRect(rail, mix(t.panel, t.text, 0.16));
  // Hatched if there is room, because the value is predicted.
  const QRectF used(rail.left(), rail.top(), rail.width() * std::clamp(share, 0.0, 1.0), rail.height());
  const QColor color = share > 1 ? t.bad : t.accent;
  p.fillRect(used, bar < 5 ? color : mix(t.panel, color, 0.45));
  if (bar >= 5) p.fillRect(used, QBrush(color, Qt::BDiagPattern));
}

// --- Links in use ---

// Appends straight links to `lines` and draws curves; links to other layers and wraparound links are stubs.
void MeshCanvas::draw_edge(QPainter& p, const designer::CanvasEdge& e, QVector<QLineF>& lines) const {
  using Way = designer::CanvasEdge::Way;
  const QPointF a = center_of(e.a);
  if (e.b < 0) {
    const int chip = shown_.picture.devices[static_cast<size_t>(e.a)].chip;
    for (const designer::CanvasSwitch& s : shown_.picture.switches)
      if (std::find(s.chips.begin(), s.chips.end(), chip) != s.chips.end())
        lines << QLineF(a, QPointF(a.x(), to_pixels(s.at).center().y()));
    return;
  }
  const QPointF b = center_of(e.b), way = b - a;
  const double length = std::max(1.0, std::hypot(way.x(), way.y()));
  if (e.way == Way::wrap) {
    const QPointF out = way / length * pitch_ * 0.56;
    lines << QLineF(a, a - out) << QLineF(b, b + out);
  } else if (e.way == Way::sheets) {
    const QPointF up(pitch_ * 0.5, -pitch_ * 0.5);
    lines << QLineF(a, a + up) << QLineF(b, b - up);
  } else if (length < 1.3 * pitch_) {
    lines << QLineF(a, b);
  } else if (pitch_ < kFine) {  // passes beside the chips in between
    const QPointF aside = QPointF(-way.y(), way.x()) / length * pitch_ * 0.44;
    lines << QLineF(a + aside, b + aside);
  } else {
    p.setRenderHint(QPainter::Antialiasing);
    draw_bow(p, a, b, pitch_ * std::min(1.05, 0.3 + 0.12 * std::hypot(way.x(), way.y()) / pitch_));
  }
}

void MeshCanvas::paint_edges(QPainter& p) const {
  const auto draw = [&](const std::vector<designer::CanvasEdge>& edges, const QColor& color, double width) {
    // Dashed, because the traffic is predicted; thin lines are solid to remain readable.
    p.setPen(QPen(color, width, pitch_ < kFine ? Qt::SolidLine : Qt::DashLine, Qt::FlatCap));
    p.setBrush(Qt::NoBrush);
    QVector<QLineF> lines;
    for (const designer::CanvasEdge& e : edges) draw_edge(p, e, lines);
    p.setRenderHint(QPainter::Antialiasing, pitch_ >= kFine && devices() <= kCrowd);
    p.drawLines(lines);
  };
  const double width = pitch_ > 40 ? 4 : pitch_ >= kFine ? 2.5 : 1;
  for (size_t i = 0; i < traffic_.size(); ++i) draw(shown_.edges[i], axis_color(traffic_[i].axis), width);
  for (const AxisChip* c : chips_)
    if (c->has_attention())
      draw(designer::axis_edges(shown_.choice.mesh, shown_.layout, ss(c->axis())), axis_color(c->axis()), width);
}

void MeshCanvas::paint_labels(QPainter& p) const {
  const Theme& t = theme();
  if (pitch_ < kLabels) return;
  for (size_t i = 0; i < traffic_.size(); ++i) {
    if (traffic_[i].label.isEmpty() || shown_.edges[i].empty()) continue;
    const designer::CanvasEdge& e = shown_.edges[i].front();
    if (e.b < 0) continue;
    const QPointF middle = (center_of(e.a) + center_of(e.b)) / 2;
    QRectF box(QPointF(), QSizeF(p.fontMetrics().horizontalAdvance(traffic_[i].label) + 8, 16));
    if (box.width() > pitch_) continue;  // it would hide the shards; the text below has it, too
    box.moveCenter(middle + QPointF(0, 10.0 * static_cast<double>(i)));
    p.fillRect(box, mix(t.panel, axis_color(traffic_[i].axis), 0.15));
    draw_elided(p, box, Qt::AlignCenter, traffic_[i].label, t.text);
  }
}

// --- The selected tensor ---

void MeshCanvas::paint_tensor(QPainter& p) const {
  const Theme& t = theme();
  QRectF line(tensor_area_.left(), tensor_area_.top(), tensor_area_.width(), 18);
  if (!shown_.tensor) {
    const QString why =
        tensor_.empty() ? tr("Select a tensor to see its shards") : tr("This design has no tensor %1").arg(qs(tensor_));
    draw_elided(p, line, Qt::AlignLeft | Qt::AlignVCenter, why, t.muted);
    return;
  }
  const mesh::PlacedTensor& tensor = *shown_.tensor;
  const QString where = lacks_height() ? qs(mesh::to_text(tensor.spec)) : qs(tensor.rule);
  const int room_for_name = static_cast<int>(line.width()) - p.fontMetrics().horizontalAdvance(where) - 10;
  draw_elided(p, line, Qt::AlignRight | Qt::AlignVCenter, where, t.muted);
  p.setFont(font());
  p.setPen(t.text);
  p.drawText(line, Qt::AlignLeft | Qt::AlignVCenter,
             p.fontMetrics().elidedText(qs(tensor.name), Qt::ElideRight, room_for_name));
  p.setFont(small_font());
  if (lacks_height()) return;
  paint_dimensions(p);
  line.moveTop(tensor_dimension_at(0).bottom() + 5);
  const auto write = [&](const QString& text, const QColor& color) {
    if (line.bottom() > tensor_area_.bottom()) return;
    draw_elided(p, line, Qt::AlignLeft | Qt::AlignVCenter, text, color);
    line.translate(0, 16);
  };
  QStringList pieces{tr("complete on every device")};
  if (tensor.shards > 1) pieces = {tr("%1 each, %n piece(s)", nullptr, tensor.shards).arg(times(tensor.shard))};
  if (tensor.replicas > 1 && tensor.shards > 1) pieces << tr("%n copies", nullptr, tensor.replicas);
  write(pieces.join(u", "_s), t.text);
  if (!shows_tensor_beside())
    for (const CanvasTraffic& traffic : traffic_)
      if (!traffic.label.isEmpty()) write(traffic.axis % u": "_s % traffic.label, axis_text_color(traffic.axis));
  const auto room = static_cast<size_t>(std::max(0.0, (tensor_area_.bottom() - line.top() - 2) / 16));
  for (size_t i = 0; i < traffic_.size(); ++i) {
    const size_t left = traffic_.size() - i;
    if (i + 1 == room && left > 1) return write(tr("and %1 more").arg(left), t.muted);  // listed in the tooltip
    write(traffic_[i].text, axis_text_color(traffic_[i].axis));
  }
}

void MeshCanvas::paint_dimensions(QPainter& p) const {
  const Theme& t = theme();
  const mesh::PlacedTensor& tensor = *shown_.tensor;
  const bool editing = edit_mode_ == EditMode::mouse || edit_mode_ == EditMode::moving;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const QRectF box = tensor_dimension_at(static_cast<int>(d));
    const bool aimed = action_ && action_->kind == Action::Kind::shard && action_->value == static_cast<int>(d);
    const QColor edge = !aimed ? (editing ? t.accent : t.line) : outcome_ && outcome_->accepted ? t.good : t.bad;
    p.setPen(QPen(edge, aimed ? 2 : 1, editing ? Qt::DashLine : Qt::SolidLine));
    p.setBrush(aimed ? mix(t.panel, edge, 0.25) : mix(t.panel, t.text, 0.04));
    p.drawRoundedRect(box, 4, 4);
    draw_elided(p, box.adjusted(6, 3, -4, -22), Qt::AlignLeft | Qt::AlignVCenter,
                qs(mesh::axis_key(tensor.dims[d].axis)), t.text);
    const QRectF below = box.adjusted(6, 22, -5, -3);
    const QString size = QString::number(tensor.dims[d].size);
    draw_elided(p, below, Qt::AlignLeft | Qt::AlignVCenter, size, t.text);
    QString axes;
    for (const std::string& axis : tensor.spec.dims[d]) axes += (axes.isEmpty() ? u""_s : u", "_s) % qs(axis);
    const QColor color = tensor.spec.dims[d].empty() ? t.faint : axis_text_color(qs(tensor.spec.dims[d].back()));
    draw_elided(p, below.adjusted(p.fontMetrics().horizontalAdvance(size) + 6, 0, 0, 0),
                Qt::AlignRight | Qt::AlignVCenter, axes.isEmpty() ? u"-"_s : axes, color);
  }
}

// Two lines below the axes that nothing else uses: a refusal or a preview, which points at its axis, else the status of
// a device.
void MeshCanvas::paint_callout(QPainter& p) const {
  const Theme& t = theme();
  constexpr int kWrapped = Qt::AlignLeft | Qt::AlignVCenter | Qt::TextWordWrap;
  const QString text = callout();
  if (text.isEmpty()) {
    QString now = status();
    if (now.isEmpty() && editing_ == Editing::allowed && drawable_) {
      now = tr("Drag an axis to change its size, or drop it on a side of the grid or on a dimension of the tensor");
      if (p.fontMetrics().boundingRect(callout_area_.toRect(), kWrapped, now).height() > callout_area_.height())
        now = tr("Drag an axis, also onto the grid or onto a dimension");
    }
    p.setPen(t.muted);
    p.drawText(callout_area_, kWrapped, now);
    return;
  }
  const QColor edge = message_.isEmpty() ? axis_color(edited_axis_) : t.bad;
  const QRectF room = callout_area_.adjusted(0, 0, -18, -4);
  QRectF box = p.fontMetrics().boundingRect(room.toRect(), kWrapped, text);
  box = QRectF(callout_area_.left(), callout_area_.top(), box.width() + 18, callout_area_.height());
  const AxisChip* anchor = chip(edited_axis_);
  const double last = std::max(callout_area_.left(), callout_area_.right() - box.width());
  if (anchor) box.moveLeft(std::clamp(anchor->x() - 4.0, callout_area_.left(), last));
  p.setPen(QPen(edge, 1));
  p.setBrush(mix(t.panel, edge, 0.12));
  p.drawRoundedRect(box, 5, 5);
  if (anchor) {
    const double x = anchor->geometry().center().x(), top = box.top();
    p.drawPolygon(QPolygonF({{x - 5, top}, {x, top - 5}, {x + 5, top}}));
  }
  p.setPen(t.text);
  p.drawText(box.adjusted(9, 2, -9, -2), kWrapped, text);
}

}  // namespace mw::ui
