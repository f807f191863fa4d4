// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/mesh_painter.h"

#include <QPainter>
#include <cmath>

#include "ui/pages/design/mesh_canvas.h"

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

void MeshPainter::paint_still(QPainter& p, const QRectF& caption, const QStringList& lit) const {
  p.fillRect(canvas_.rect(), theme().panel);
  p.setFont(small_font());
  if (p.fontMetrics().horizontalAdvance(state_.design.caption) <= caption.width())
    draw_elided(p, caption, Qt::AlignVCenter | Qt::AlignRight, state_.design.caption, theme().muted);
  if (!state_.drawable) return;
  paint_sides(p);
  p.setRenderHint(QPainter::Antialiasing, geometry_.pitch() >= kFine && state_.devices() <= kCrowd);
  paint_network(p);
  paint_links(p);
  paint_edges(p, lit);
  paint_chips(p);
  p.setRenderHint(QPainter::Antialiasing);
  paint_labels(p);
  paint_tensor(p);
}

void MeshPainter::paint_selection(QPainter& p) const {
  for (const int d : {state_.selected, state_.hovered}) {
    if (d < 0 || d >= state_.devices()) continue;
    p.setPen(QPen(theme().accent, d == state_.selected ? 2.5 : 1.5));
    p.drawRect(geometry_.device_at(d));
  }
}

// --- Sides of the grid ---

void MeshPainter::paint_sides(QPainter& p) const {
  const Theme& t = theme();
  const bool editing = edit_.aims();
  for (const designer::CanvasSide& s : state_.shown.picture.sides) {
    const QRectF box = geometry_.side_at(s.dimension);
    const bool aimed =
        edit_.action() && edit_.action()->kind == Action::Kind::lay && edit_.action()->value == s.dimension;
    const QColor edge = !aimed ? (editing ? t.accent : t.line) : edit_.is_accepted() ? t.good : t.bad;
    p.setPen(QPen(edge, 1, editing ? Qt::DashLine : Qt::SolidLine));
    p.setBrush(aimed ? mix(t.panel, edge, 0.25) : mix(t.panel, t.text, 0.03));
    p.drawRect(box);
    QString text = qs(s.name) % u' ' % QString::number(s.size);
    if (s.where == designer::CanvasSide::Where::network) text = MeshCanvas::tr("%1 over the network").arg(text);
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
void MeshPainter::paint_network(QPainter& p) const {
  const Theme& t = theme();
  const designer::CanvasPicture& picture = state_.shown.picture;
  const auto box_of = [&](int group) { return geometry_.to_pixels(picture.groups[static_cast<size_t>(group)].at); };
  const size_t stripes = std::max<size_t>(1, picture.network_axes.size());
  const double width = geometry_.pitch() > 40 ? 6 : geometry_.pitch() >= 12 ? 4 : 2;
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
    const QRectF box = geometry_.to_pixels(group.at);
    p.setPen(QPen(mix(t.panel, t.text, 0.3), 1));
    p.drawRect(box);
    const double head = 0.35 * geometry_.pitch();
    if (head >= 12)
      draw_elided(p, QRectF(box.left() + 4, box.top(), box.width() - 8, head), Qt::AlignVCenter, qs(group.name),
                  t.muted);
  }
}

// --- Chips and links ---

void MeshPainter::paint_links(QPainter& p) const {
  const Theme& t = theme();
  p.setPen(QPen(mix(t.panel, t.text, 0.28), geometry_.pitch() > kFine ? 2 : 1));
  p.setBrush(Qt::NoBrush);
  int layers = -1;
  for (const designer::CanvasSide& s : state_.shown.picture.sides)
    if (s.where == designer::CanvasSide::Where::layers) layers = s.dimension;
  QVector<QLineF> lines;
  for (const designer::CanvasLink& l : state_.shown.picture.links) {
    if (l.dimension == layers) continue;  // links between layers are drawn only if an axis uses them
    const QPointF a = geometry_.to_pixels(state_.shown.picture.chips[static_cast<size_t>(l.a)].at).center();
    const QPointF b = geometry_.to_pixels(state_.shown.picture.chips[static_cast<size_t>(l.b)].at).center();
    if (!l.wrap) {
      lines << QLineF(a, b);
      continue;
    }
    // A wraparound link is drawn as a stub at both ends.
    const QPointF out = (a - b) / std::max(1.0, std::hypot(a.x() - b.x(), a.y() - b.y())) * geometry_.pitch() * 0.56;
    lines << QLineF(a, a + out) << QLineF(b, b - out);
  }
  p.drawLines(lines);
  for (const designer::CanvasSwitch& s : state_.shown.picture.switches) {
    const QRectF bar = geometry_.to_pixels(s.at);
    for (const int c : s.chips) {
      const QPointF from = geometry_.to_pixels(state_.shown.picture.chips[static_cast<size_t>(c)].at).center();
      p.drawLine(from, QPointF(from.x(), bar.center().y()));
    }
    p.fillRect(bar, mix(t.panel, t.text, 0.28));
    if (geometry_.pitch() > 40) draw_elided(p, bar, Qt::AlignCenter, qs(s.name), t.text);
    p.setPen(QPen(mix(t.panel, t.text, 0.28), 2));
  }
}

void MeshPainter::paint_chips(QPainter& p) const {
  const Theme& t = theme();
  const QColor ground = mix(t.panel, t.text, 0.05), edge = mix(t.panel, t.text, 0.3);
  p.setRenderHint(QPainter::Antialiasing, false);  // boxes are sharper without it
  for (const designer::CanvasChip& c : state_.shown.picture.chips) {
    const QRectF box = geometry_.to_pixels(c.at);
    p.fillRect(box, ground);
    for (const int d : c.devices) paint_device(p, d);
    p.setPen(QPen(edge, 1));
    p.setBrush(Qt::NoBrush);
    p.drawRect(box);
  }
}

void MeshPainter::paint_device(QPainter& p, int device) const {
  const Theme& t = theme();
  const QRectF box = geometry_.device_at(device);
  const size_t i = static_cast<size_t>(device);
  const double bar = state_.memory.empty() ? 0 : std::clamp(box.height() * 0.13, 2.0, 9.0);
  const bool is_labelled = box.width() > 44;
  if (i < state_.shown.pieces.size()) {
    const designer::PieceArea& v = state_.shown.pieces[i];
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
  if (state_.memory.empty()) return;
  const double share = state_.memory[std::min(i, state_.memory.size() - 1)];
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
void MeshPainter::draw_edge(QPainter& p, const designer::CanvasEdge& e, QVector<QLineF>& lines) const {
  using Way = designer::CanvasEdge::Way;
  const QPointF a = geometry_.center_of(e.a);
  if (e.b < 0) {
    const int chip = state_.shown.picture.devices[static_cast<size_t>(e.a)].chip;
    for (const designer::CanvasSwitch& s : state_.shown.picture.switches)
      if (std::find(s.chips.begin(), s.chips.end(), chip) != s.chips.end())
        lines << QLineF(a, QPointF(a.x(), geometry_.to_pixels(s.at).center().y()));
    return;
  }
  const QPointF b = geometry_.center_of(e.b), way = b - a;
  const double length = std::max(1.0, std::hypot(way.x(), way.y()));
  if (e.way == Way::wrap) {
    const QPointF out = way / length * geometry_.pitch() * 0.56;
    lines << QLineF(a, a - out) << QLineF(b, b + out);
  } else if (e.way == Way::sheets) {
    const QPointF up(geometry_.pitch() * 0.5, -geometry_.pitch() * 0.5);
    lines << QLineF(a, a + up) << QLineF(b, b - up);
  } else if (length < 1.3 * geometry_.pitch()) {
    lines << QLineF(a, b);
  } else if (geometry_.pitch() < kFine) {  // passes beside the chips in between
    const QPointF aside = QPointF(-way.y(), way.x()) / length * geometry_.pitch() * 0.44;
    lines << QLineF(a + aside, b + aside);
  } else {
    p.setRenderHint(QPainter::Antialiasing);
    draw_bow(p, a, b,
             geometry_.pitch() * std::min(1.05, 0.3 + 0.12 * std::hypot(way.x(), way.y()) / geometry_.pitch()));
  }
}

void MeshPainter::paint_edges(QPainter& p, const QStringList& lit) const {
  const auto draw = [&](const std::vector<designer::CanvasEdge>& edges, const QColor& color, double width) {
    // Dashed, because the traffic is predicted; thin lines are solid to remain readable.
    p.setPen(QPen(color, width, geometry_.pitch() < kFine ? Qt::SolidLine : Qt::DashLine, Qt::FlatCap));
    p.setBrush(Qt::NoBrush);
    QVector<QLineF> lines;
    for (const designer::CanvasEdge& e : edges) draw_edge(p, e, lines);
    p.setRenderHint(QPainter::Antialiasing, geometry_.pitch() >= kFine && state_.devices() <= kCrowd);
    p.drawLines(lines);
  };
  const double width = geometry_.pitch() > 40 ? 4 : geometry_.pitch() >= kFine ? 2.5 : 1;
  for (size_t i = 0; i < state_.traffic.size(); ++i)
    draw(state_.shown.edges[i], axis_color(state_.traffic[i].axis), width);
  for (const QString& axis : lit)
    draw(designer::axis_edges(state_.shown.choice.mesh, state_.shown.layout, ss(axis)), axis_color(axis), width);
}

void MeshPainter::paint_labels(QPainter& p) const {
  const Theme& t = theme();
  if (geometry_.pitch() < kLabels) return;
  for (size_t i = 0; i < state_.traffic.size(); ++i) {
    if (state_.traffic[i].label.isEmpty() || state_.shown.edges[i].empty()) continue;
    const designer::CanvasEdge& e = state_.shown.edges[i].front();
    if (e.b < 0) continue;
    const QPointF middle = (geometry_.center_of(e.a) + geometry_.center_of(e.b)) / 2;
    QRectF box(QPointF(), QSizeF(p.fontMetrics().horizontalAdvance(state_.traffic[i].label) + 8, 16));
    if (box.width() > geometry_.pitch()) continue;  // it would hide the shards; the text below has it, too
    box.moveCenter(middle + QPointF(0, 10.0 * static_cast<double>(i)));
    p.fillRect(box, mix(t.panel, axis_color(state_.traffic[i].axis), 0.15));
    draw_elided(p, box, Qt::AlignCenter, state_.traffic[i].label, t.text);
  }
}

// --- The selected tensor ---

void MeshPainter::paint_tensor(QPainter& p) const {
  const Theme& t = theme();
  QRectF line(geometry_.tensor().left(), geometry_.tensor().top(), geometry_.tensor().width(), 18);
  if (!state_.shown.tensor) {
    const QString why = state_.tensor.empty() ? MeshCanvas::tr("Select a tensor to see its shards")
                                              : MeshCanvas::tr("This design has no tensor %1").arg(qs(state_.tensor));
    draw_elided(p, line, Qt::AlignLeft | Qt::AlignVCenter, why, t.muted);
    return;
  }
  const mesh::PlacedTensor& tensor = *state_.shown.tensor;
  const QString where = geometry_.lacks_height() ? qs(mesh::to_text(tensor.spec)) : qs(tensor.rule);
  const int room_for_name = static_cast<int>(line.width()) - p.fontMetrics().horizontalAdvance(where) - 10;
  draw_elided(p, line, Qt::AlignRight | Qt::AlignVCenter, where, t.muted);
  p.setFont(canvas_.font());
  p.setPen(t.text);
  p.drawText(line, Qt::AlignLeft | Qt::AlignVCenter,
             p.fontMetrics().elidedText(qs(tensor.name), Qt::ElideRight, room_for_name));
  p.setFont(small_font());
  if (geometry_.lacks_height()) return;
  paint_dimensions(p);
  line.moveTop(geometry_.tensor_dimension_at(0).bottom() + 5);
  const auto write = [&](const QString& text, const QColor& color) {
    if (line.bottom() > geometry_.tensor().bottom()) return;
    draw_elided(p, line, Qt::AlignLeft | Qt::AlignVCenter, text, color);
    line.translate(0, 16);
  };
  QStringList pieces{MeshCanvas::tr("complete on every device")};
  if (tensor.shards > 1)
    pieces = {MeshCanvas::tr("%1 each, %n piece(s)", nullptr, tensor.shards).arg(times(tensor.shard))};
  if (tensor.replicas > 1 && tensor.shards > 1) pieces << MeshCanvas::tr("%n copies", nullptr, tensor.replicas);
  write(pieces.join(u", "_s), t.text);
  if (!geometry_.shows_tensor_beside())
    for (const CanvasTraffic& traffic : state_.traffic)
      if (!traffic.label.isEmpty()) write(traffic.axis % u": "_s % traffic.label, axis_text_color(traffic.axis));
  const auto room = static_cast<size_t>(std::max(0.0, (geometry_.tensor().bottom() - line.top() - 2) / 16));
  for (size_t i = 0; i < state_.traffic.size(); ++i) {
    const size_t left = state_.traffic.size() - i;
    if (i + 1 == room && left > 1)
      return write(MeshCanvas::tr("and %1 more").arg(left), t.muted);  // listed in the tooltip
    write(state_.traffic[i].text, axis_text_color(state_.traffic[i].axis));
  }
}

void MeshPainter::paint_dimensions(QPainter& p) const {
  const Theme& t = theme();
  const mesh::PlacedTensor& tensor = *state_.shown.tensor;
  const bool editing = edit_.aims();
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const QRectF box = geometry_.tensor_dimension_at(static_cast<int>(d));
    const bool aimed =
        edit_.action() && edit_.action()->kind == Action::Kind::shard && edit_.action()->value == static_cast<int>(d);
    const QColor edge = !aimed ? (editing ? t.accent : t.line) : edit_.is_accepted() ? t.good : t.bad;
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
void MeshPainter::paint_callout(QPainter& p, const QString& text, const QRect& anchor, Editing editing) const {
  const Theme& t = theme();
  constexpr int kWrapped = Qt::AlignLeft | Qt::AlignVCenter | Qt::TextWordWrap;
  if (text.isEmpty()) {
    QString now = state_.status();
    if (now.isEmpty() && editing == Editing::allowed && state_.drawable) {
      now = MeshCanvas::tr(
          "Drag an axis to change its size, or drop it on a side of the grid or on a dimension of the tensor");
      if (p.fontMetrics().boundingRect(geometry_.callout().toRect(), kWrapped, now).height() >
          geometry_.callout().height())
        now = MeshCanvas::tr("Drag an axis, also onto the grid or onto a dimension");
    }
    p.setPen(t.muted);
    p.drawText(geometry_.callout(), kWrapped, now);
    return;
  }
  const QColor edge = state_.message.isEmpty() ? axis_color(edit_.axis()) : t.bad;
  const QRectF room = geometry_.callout().adjusted(0, 0, -18, -4);
  QRectF box = p.fontMetrics().boundingRect(room.toRect(), kWrapped, text);
  box = QRectF(geometry_.callout().left(), geometry_.callout().top(), box.width() + 18, geometry_.callout().height());
  const double last = std::max(geometry_.callout().left(), geometry_.callout().right() - box.width());
  if (!anchor.isNull()) box.moveLeft(std::clamp(anchor.x() - 4.0, geometry_.callout().left(), last));
  p.setPen(QPen(edge, 1));
  p.setBrush(mix(t.panel, edge, 0.12));
  p.drawRoundedRect(box, 5, 5);
  if (!anchor.isNull()) {
    const double x = anchor.center().x(), top = box.top();
    p.drawPolygon(QPolygonF({{x - 5, top}, {x, top - 5}, {x + 5, top}}));
  }
  p.setPen(t.text);
  p.drawText(box.adjusted(9, 2, -9, -2), kWrapped, text);
}

}  // namespace mw::ui
