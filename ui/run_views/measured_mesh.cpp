// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/measured_mesh.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/experiment/bound_experiment.h"
#include "ui/charts/ticks.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr double kTitleRow = 25;

QString time_text(double seconds, double waited) {
  return MeasuredMesh::tr("in %1, including %2 waiting")
      .arg(qs(to_text(Seconds(seconds))), qs(to_text(Seconds(waited))));
}

void draw_text(QPainter& p, const QRectF& box, int flags, const QString& text, const QColor& color) {
  draw_elided(p, box, flags | Qt::AlignVCenter, text, color);
}

}  // namespace

mesh::Mesh mesh_of(const RunData& run) {
  if (mesh::Mesh started = run.view.ran_on(); !started.axes.empty()) return started;
  mesh::Mesh mesh = run.record.valid_values().mesh;
  for (mesh::MeshAxis& axis : mesh.axes) axis.size = std::min(axis.size, 4096);
  return mesh;
}

bool on_a_mesh(const RunPtr& run) {
  return run && run->view.devices() > 1;
}

MeasuredMesh::MeasuredMesh(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Graphic);
  setAccessibleName(tr("Mesh as measured"));
}

void MeasuredMesh::show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot, PlayheadMode mode) {
  if (run != run_) selected_ = -1;
  if (const mesh::Mesh now = run ? mesh_of(*run) : mesh::Mesh{}; run != run_ || !(now == mesh_)) {
    mesh_ = now;
    grid_ = views::device_grid(mesh_);
  }
  run_ = run;
  if (const int reported = static_cast<int>(snapshot.devices.size()); reported > mesh_.devices()) {
    mesh_.axes = {{"device", reported}};  // records of other programs contain no mesh
    grid_ = views::device_grid(mesh_);
  }
  snapshot_ = snapshot;
  mode_ = mode;
  setAccessibleDescription(summary());
  update();
}

void MeasuredMesh::select_device(int device) {
  if (device == selected_) return;
  selected_ = device;
  update();
}

QString MeasuredMesh::caption() const {
  if (!run_) return {};
  const QString name = qs(run_->id.empty() ? run_->name : run_->id);
  const QString where = mode_ == PlayheadMode::hovered ? tr("at the cursor")
                        : mode_ == PlayheadMode::held  ? tr("held")
                        : run_->is_live                ? tr("live")
                                                       : tr("last");
  return tr("%1, step %2, %3").arg(name).arg(snapshot_.step).arg(where);
}

QString MeasuredMesh::axis_text(const views::AxisTraffic& axis) const {
  const QString planned = planned_text(axis.sum);
  return tr("%1 %2: %3%4 %5, %6 calls")
      .arg(qs(axis.axis))
      .arg(mesh_.size(axis.axis))
      .arg(value_text(axis.sum.bytes, AxisQuantity::bytes), planned.isEmpty() ? planned : u", "_s + planned + u',',
           time_text(axis.sum.seconds, axis.sum.waited))
      .arg(axis.sum.calls);
}

QString MeasuredMesh::planned_text(const views::TrafficTotals& flow) {
  if (!flow.planned) return {};
  const QString bytes = value_text(*flow.planned, AxisQuantity::bytes);
  return flow.as_planned() ? tr("planned %1").arg(bytes) : tr("instead of the planned %1").arg(bytes);
}

const views::DeviceSnapshot* MeasuredMesh::of_device(int device) const {
  const auto at = std::find_if(snapshot_.devices.begin(), snapshot_.devices.end(),
                               [&](const views::DeviceSnapshot& d) { return d.device == device; });
  return at == snapshot_.devices.end() ? nullptr : &*at;
}

const views::AxisTraffic* MeasuredMesh::of_axis(int axis) const {
  const std::string& name = mesh_.axes[static_cast<size_t>(axis)].name;
  const auto at = std::find_if(snapshot_.axes.begin(), snapshot_.axes.end(),
                               [&](const views::AxisTraffic& a) { return a.axis == name; });
  return at == snapshot_.axes.end() ? nullptr : &*at;
}

QString MeasuredMesh::device_text(int device) const {
  if (device < 0 || static_cast<size_t>(device) >= grid_.devices.size()) return {};
  QString text = tr("device %1 (%2)").arg(device).arg(qs(grid_.devices[static_cast<size_t>(device)].name));
  const views::DeviceSnapshot* d = of_device(device);
  if (!d) return tr("%1: nothing measured yet").arg(text);
  const QString bytes = qs(to_text(d->bytes.total()));
  if (const auto capacity = run_->view.capacity())
    text = tr("%1: %2 in memory of %3, %4 %")
               .arg(text, bytes, qs(to_text(*capacity)), QString::number(d->bytes.total() / *capacity * 100, 'f', 0));
  else
    text = tr("%1: %2 in memory").arg(text, bytes);
  if (d->predicted)
    text = (d->beyond_prediction() ? tr("%1; more than the predicted peak of %2") : tr("%1; predicted peak %2"))
               .arg(text, qs(to_text(d->predicted->total())));
  if (d->sent)
    text =
        tr("%1; sent %2 %3")
            .arg(text, value_text(d->sent->bytes, AxisQuantity::bytes), time_text(d->sent->seconds, d->sent->waited));
  return text;
}

QString MeasuredMesh::summary() const {
  if (!run_) return {};
  QStringList parts{tr("measured, %1").arg(caption())};
  for (const views::GridDevice& d : grid_.devices) parts << device_text(d.device);
  for (const views::AxisTraffic& a : snapshot_.axes) parts << axis_text(a);
  return parts.join(u"; "_s);
}

MeasuredMesh::Frame MeasuredMesh::frame() const {
  Frame f;
  f.header = QRectF(8, 0, width() - 16, kTitleRow);
  const double lines = kTextLine * static_cast<double>(std::max<size_t>(1, snapshot_.axes.size()) + 1) + 4;
  const bool beside = width() > 620 && height() < 260;
  const double wide = beside ? width() * 0.42 : width() - 16;
  f.lines = beside ? QRectF(width() - wide - 8, kTitleRow, wide, height() - kTitleRow - 4)
                   : QRectF(8, height() - lines - 2, wide, lines);
  f.devices = QRectF(8, kTitleRow + 2, beside ? width() - wide - 28 : width() - 16,
                     height() - kTitleRow - 8 - (beside ? 0 : lines));
  return f;
}

QRectF MeasuredMesh::device_at(int device) const {
  if (device < 0 || static_cast<size_t>(device) >= grid_.devices.size()) return {};
  const auto& d = grid_.devices[static_cast<size_t>(device)];
  const QRectF area = frame().devices;
  const double w = std::min(area.width() / grid_.columns, 320.0), h = std::min(area.height() / grid_.rows, 140.0);
  const double gap_x = grid_.columns > 1 ? std::clamp(w * 0.26, 6.0, 64.0) : 0;
  const double gap_y = grid_.rows > 1 ? std::clamp(h * 0.3, 5.0, 30.0) : 0;
  const double left = area.center().x() - (w * grid_.columns - gap_x) / 2;
  const double top = area.center().y() - (h * grid_.rows - gap_y) / 2;
  return {left + d.column * w, top + d.row * h, w - gap_x, h - gap_y};
}

int MeasuredMesh::device_under(QPointF at) const {
  for (int device = 0; device < static_cast<int>(grid_.devices.size()); ++device)
    if (device_at(device).contains(at)) return device;
  return -1;
}

QString MeasuredMesh::memory_text(int device) const {
  QStringList lines{device_text(device)};
  if (const views::DeviceSnapshot* d = of_device(device))
    for (const MemoryCategory category : all_values<MemoryCategory>())
      if (const Bytes predicted = d->predicted ? (*d->predicted)[category] : Bytes();
          d->bytes[category].value > 0 || predicted.value > 0)
        lines << (d->predicted ? tr("%1 %2, at the predicted peak %3") : tr("%1 %2"))
                     .arg(category_text(category), qs(to_text(d->bytes[category])), qs(to_text(predicted)));
  return lines.join(u'\n');
}

bool MeasuredMesh::event(QEvent* event) {
  return show_tooltip(event, *this, [this](QPoint at) { return memory_text(device_under(at)); }) ||
         QWidget::event(event);
}

void MeasuredMesh::mousePressEvent(QMouseEvent* event) {
  const int device = device_under(event->position());
  if (device < 0) return;
  select_device(device);
  emit device_selected(selected_);
}

// Arrow keys select the adjacent device.
void MeasuredMesh::keyPressEvent(QKeyEvent* event) {
  const int dx = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  const int dy = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
  if ((dx == 0 && dy == 0) || grid_.devices.empty()) return QWidget::keyPressEvent(event);
  const auto& from = grid_.devices[static_cast<size_t>(std::max(0, selected_))];
  int next = std::max(0, selected_);
  if (selected_ >= 0)
    for (const auto& d : grid_.devices)
      if (d.column == from.column + dx && d.row == from.row + dy) next = d.device;
  select_device(next);
  emit device_selected(selected_);
}

QColor MeasuredMesh::axis_color(int axis) const {
  return ui::axis_color(qs(mesh_.axes[static_cast<size_t>(axis)].name));
}

// Measured values are solid, predicted ones dashed and outlined.
void MeasuredMesh::paintEvent(QPaintEvent*) {
  QPainter p(this);
  p.fillRect(rect(), theme().panel);
  p.setFont(small_font());
  p.setRenderHint(QPainter::Antialiasing);
  const Frame f = frame();
  paint_header(p, f.header);
  if (run_) {
    paint_edges(p);
    for (size_t d = 0; d < grid_.devices.size(); ++d) paint_device(p, static_cast<int>(d));
    paint_labels(p);
    paint_lines(p, f.lines);
  }
  paint_edge(p, *this);
}

void MeasuredMesh::paint_header(QPainter& p, const QRectF& box) const {
  const Theme& t = theme();
  const QFont bold = demi_bold(small_font());
  p.setFont(bold);
  const QString badge = tr("Measured");
  const QRectF pill(box.left(), box.top() + 5, p.fontMetrics().horizontalAdvance(badge) + 14, 17);
  p.setPen(Qt::NoPen);
  p.setBrush(t.accent);
  p.drawRoundedRect(pill, 8, 8);
  p.setPen(t.accent_text);
  p.drawText(pill, Qt::AlignCenter, badge);
  p.setFont(small_font());
  draw_text(p, QRectF(pill.right() + 8, box.top() + 4, box.right() - pill.right() - 8, 18), Qt::AlignLeft,
            run_ ? caption() : tr("No run on a mesh is shown"), t.text);
}

double MeasuredMesh::edge_width(int axis) const {
  const views::AxisTraffic* flow = of_axis(axis);
  double most = 0;
  for (const views::AxisTraffic& a : snapshot_.axes) most = std::max(most, a.sum.bytes);
  if (!flow || flow->sum.bytes <= 0) return 0;
  return 2.5 + 5 * std::sqrt(flow->sum.bytes / most);
}

void MeasuredMesh::paint_edges(QPainter& p) const {
  p.setBrush(Qt::NoBrush);
  for (const views::DeviceEdge& e : grid_.edges) {
    const double width = edge_width(e.axis);
    const QColor color = width > 0 ? axis_color(e.axis) : theme().line;
    p.setPen(QPen(color, std::max(1.0, width), Qt::SolidLine, Qt::FlatCap));
    const QPointF a = device_at(e.a).center(), b = device_at(e.b).center();
    const auto &from = grid_.devices[static_cast<size_t>(e.a)], &to = grid_.devices[static_cast<size_t>(e.b)];
    if (std::abs(from.column - to.column) + std::abs(from.row - to.row) == 1) {
      p.drawLine(a, b);
      continue;
    }
    draw_bow(p, a, b, device_at(e.a).height() * 1.1);
  }
}

// Labels each axis at its first edge if there is room; the lines below show the same figures.
void MeasuredMesh::paint_labels(QPainter& p) const {
  const Theme& t = theme();
  std::vector<bool> done(mesh_.axes.size());
  for (const views::DeviceEdge& e : grid_.edges) {
    const auto axis = static_cast<size_t>(e.axis);
    const views::AxisTraffic* flow = of_axis(e.axis);
    if (done[axis] || !flow) continue;
    done[axis] = true;
    const QString text = value_text(flow->sum.bytes, AxisQuantity::bytes);
    const QRectF a = device_at(e.a), b = device_at(e.b);
    QRectF box(0, 0, p.fontMetrics().horizontalAdvance(text) + 8, 15);
    box.moveCenter((a.center() + b.center()) / 2);
    const bool across = b.left() > a.right();
    if (across ? box.width() > b.left() - a.right() : box.height() > b.top() - a.bottom() + 6) continue;
    p.setPen(QPen(axis_color(e.axis), 1));
    p.setBrush(t.panel);
    p.drawRoundedRect(box, 4, 4);
    p.setPen(t.text);
    p.drawText(box, Qt::AlignCenter, text);
  }
}

// Full scale of the bars: the capacity if a device comes near it, otherwise slightly more than the largest value.
double MeasuredMesh::bar_whole() const {
  double most = 1;
  for (const views::DeviceSnapshot& d : snapshot_.devices) {
    most = std::max(most, static_cast<double>(d.bytes.total().value));
    if (d.predicted) most = std::max(most, static_cast<double>(d.predicted->total().value));
  }
  const auto capacity = run_->view.capacity();
  const double limit = capacity ? static_cast<double>(capacity->value) : 0;
  return limit > 0 && limit < 4 * most ? std::max(limit, most) : most * 1.15;
}

void MeasuredMesh::paint_bar(QPainter& p, const QRectF& rail, const views::DeviceSnapshot& device) const {
  const Theme& t = theme();
  const double whole = bar_whole();
  p.fillRect(rail, mix(t.panel, t.text, 0.12));
  double x = rail.left();
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    const double w = static_cast<double>(device.bytes[category].value) / whole * rail.width();
    p.fillRect(QRectF(x, rail.top(), w, rail.height()), t.memory(category));
    x += w;
  }
  const auto at = [&](Bytes b) { return rail.left() + static_cast<double>(b.value) / whole * rail.width(); };
  if (device.predicted) {
    QPen pen(device.beyond_prediction() ? t.bad : t.text, 1.2);
    pen.setDashPattern({3, 2});
    p.setPen(pen);
    p.setBrush(Qt::NoBrush);
    p.drawRect(QRectF(QPointF(rail.left(), rail.top() - 2), QPointF(at(device.predicted->total()), rail.bottom() + 2)));
  }
  if (const auto capacity = run_->view.capacity(); capacity && at(*capacity) <= rail.right() + 0.5) {
    p.setPen(QPen(t.bad, 1.6));
    p.drawLine(QPointF(at(*capacity), rail.top() - 2), QPointF(at(*capacity), rail.bottom() + 2));
  }
}

void MeasuredMesh::paint_device(QPainter& p, int device) const {
  const Theme& t = theme();
  const QRectF box = device_at(device);
  const views::DeviceSnapshot* d = of_device(device);
  const auto capacity = run_->view.capacity();
  const bool over = d && ((capacity && d->bytes.total() > *capacity) || d->beyond_prediction());
  p.setPen(QPen(device == selected_ ? t.accent
                : over              ? t.bad
                                    : mix(t.panel, t.text, 0.35),
                device == selected_ ? 2.2 : 1));
  p.setBrush(mix(t.panel, t.text, 0.04));
  p.drawRoundedRect(box, 4, 4);
  const double bar = std::clamp(box.height() * 0.25, 4.0, 14.0);
  const QRectF inside = box.adjusted(6, 1, -6, -4);
  if (d) paint_bar(p, QRectF(inside.left(), inside.bottom() - bar, inside.width(), bar), *d);
  QRectF line(inside.left(), inside.top(), inside.width(), std::min(14.0, inside.height() - bar));
  if (line.height() < 10) return;
  const QString number = QString::number(device), used = d ? qs(to_text(d->bytes.total())) : QString();
  const int number_width = p.fontMetrics().horizontalAdvance(number),
            used_width = p.fontMetrics().horizontalAdvance(used);
  draw_text(p, line, Qt::AlignLeft, number, t.text);
  if (number_width + used_width + 8 <= line.width()) draw_text(p, line, Qt::AlignRight, used, t.text);
  if (inside.height() - bar < 30) return;
  line.translate(0, 14);
  const QString share =
      d && capacity && capacity->value > 0 ? tr("%1 %").arg(d->bytes.total() / *capacity * 100, 0, 'f', 0) : QString();
  draw_text(p, line, Qt::AlignLeft, qs(grid_.devices[static_cast<size_t>(device)].name), t.muted);
  if (p.fontMetrics().horizontalAdvance(qs(grid_.devices[static_cast<size_t>(device)].name) + share) + 8 < line.width())
    draw_text(p, line, Qt::AlignRight, share, t.muted);
  if (!d || !d->predicted || inside.height() - bar < 46) return;
  line.translate(0, 15);
  const QString predicted = tr("predicted peak"), bytes = qs(to_text(d->predicted->total()));
  const QColor color = d->beyond_prediction() ? t.bad : t.text;
  const double wide = p.fontMetrics().horizontalAdvance(bytes);
  if (p.fontMetrics().horizontalAdvance(predicted) + wide + 8 < line.width()) {
    draw_text(p, line, Qt::AlignLeft, predicted, t.muted);
  } else {  // without room for the words, a dashed outline marks the prediction
    p.setPen(QPen(color, 1, Qt::DashLine));
    p.setBrush(Qt::NoBrush);
    p.drawRect(QRectF(line.right() - wide - 3, line.top(), wide + 5, line.height()));
  }
  draw_text(p, line, Qt::AlignRight, bytes, color);
}

// Counted and planned bytes with a solid and a dashed mark; the error colour marks a difference.
void MeasuredMesh::paint_axis(QPainter& p, QRectF line, const views::AxisTraffic& axis, const QColor& color) const {
  const Theme& t = theme();
  const double middle = line.center().y();
  const auto write = [&](const QString& text, const QColor& text_color) {
    if (line.width() < 20) return;
    draw_text(p, line, Qt::AlignLeft, text, text_color);
    line.setLeft(line.left() + p.fontMetrics().horizontalAdvance(text) + 8);
  };
  const auto mark = [&](Qt::PenStyle style) {
    p.setPen(QPen(color, style == Qt::SolidLine ? 3 : 1.6, style, Qt::FlatCap));
    p.drawLine(QPointF(line.left(), middle), QPointF(line.left() + 11, middle));
    line.setLeft(line.left() + 15);
  };
  mark(Qt::SolidLine);
  const bool as_planned = axis.sum.as_planned();
  write(tr("%1 %2: %3")
            .arg(qs(axis.axis))
            .arg(mesh_.size(axis.axis))
            .arg(value_text(axis.sum.bytes, AxisQuantity::bytes)),
        as_planned ? t.text : t.bad);
  if (const QString planned = planned_text(axis.sum); !planned.isEmpty()) {
    mark(Qt::DashLine);
    write(planned, as_planned ? t.text : t.bad);
  }
  write(tr("in %1, %2 waiting").arg(qs(to_text(Seconds(axis.sum.seconds))), qs(to_text(Seconds(axis.sum.waited)))),
        t.muted);
  if (const QString calls = tr("%1 calls").arg(axis.sum.calls); p.fontMetrics().horizontalAdvance(calls) < line.width())
    write(calls, t.muted);
}

void MeasuredMesh::paint_lines(QPainter& p, QRectF box) const {
  const Theme& t = theme();
  QRectF line(box.left(), box.top(), box.width(), kTextLine);
  for (size_t i = 0; i < mesh_.axes.size(); ++i) {
    const views::AxisTraffic* flow = of_axis(static_cast<int>(i));
    if (!flow || line.bottom() > box.bottom() + 1) continue;
    paint_axis(p, line, *flow, axis_color(static_cast<int>(i)));
    line.translate(0, kTextLine);
  }
  if (snapshot_.axes.empty()) draw_text(p, line, Qt::AlignLeft, tr("No traffic between devices yet"), t.muted);
  if (selected_ >= 0 && line.bottom() <= box.bottom() + 1)
    draw_text(p, line, Qt::AlignLeft, device_text(selected_), t.muted);
}

}  // namespace mw::ui

#include "moc_measured_mesh.cpp"
