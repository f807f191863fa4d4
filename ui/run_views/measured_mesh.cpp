// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/measured_mesh.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>

#include "ui/plot/ticks.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr double kTitleRow = 25;

QString time_text(double seconds, double waited) {
  return MeasuredMesh::tr("in %1, %2 of it waiting").arg(qs(to_text(Seconds(seconds))), qs(to_text(Seconds(waited))));
}

}  // namespace

mesh::Mesh mesh_of(const RunData& run) {
  if (const mesh::Mesh started = run.view.ran_on(); !started.axes.empty()) return started;
  mesh::Mesh mesh;
  try {
    for (const auto& [axis, size] : run.record.mesh())
      mesh.axes.push_back({axis, static_cast<int>(std::clamp(size, 1LL, 4096LL))});
  } catch (const Error&) {
    mesh.axes.clear();  // a mesh of the wrong type: the run itself says so
  }
  return mesh;
}

bool on_a_mesh(const RunPtr& run) {
  return run && run->view.devices() > 1;
}

MeasuredMesh::MeasuredMesh(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Mesh as measured"));
}

void MeasuredMesh::show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot, Held held) {
  if (run != run_) selected_ = -1;
  if (const mesh::Mesh now = run ? mesh_of(*run) : mesh::Mesh{}; run != run_ || !(now == mesh_)) {
    mesh_ = now;
    grid_ = views::device_grid(mesh_);
  }
  run_ = run;
  if (const int reported = static_cast<int>(snapshot.devices.size()); reported > mesh_.devices()) {
    mesh_.axes = {{"device", reported}};  // of another program: its record says nothing of a mesh
    grid_ = views::device_grid(mesh_);
  }
  snapshot_ = snapshot;
  held_ = held;
  setAccessibleDescription(summary());
  update();
}

void MeasuredMesh::select_device(int device) {
  if (device == selected_) return;
  selected_ = device;
  update();
}

void MeasuredMesh::set_header_inset(int pixels) {
  inset_ = pixels;
  update();
}

QString MeasuredMesh::caption() const {
  if (!run_) return {};
  const QString name = qs(run_->id.empty() ? run_->name : run_->id);
  const QString where = held_ == Held::pointed ? tr("pointed at")
                        : held_ == Held::held  ? tr("held")
                        : run_->live           ? tr("live")
                                               : tr("last");
  return tr("%1, step %2, %3").arg(name).arg(snapshot_.step).arg(where);
}

QString MeasuredMesh::axis_text(const views::AxisTraffic& axis) const {
  const QString planned = planned_text(axis.sum);
  return tr("%1 %2: %3%4 %5, %6 calls")
      .arg(qs(axis.axis))
      .arg(mesh_.size(axis.axis))
      .arg(value_text(axis.sum.bytes, Quantity::bytes), planned.isEmpty() ? planned : u", "_s + planned + u',',
           time_text(axis.sum.seconds, axis.sum.waited))
      .arg(axis.sum.calls);
}

QString MeasuredMesh::planned_text(const views::TrafficTotals& flow) {
  if (!flow.planned) return {};
  const QString bytes = value_text(*flow.planned, Quantity::bytes);
  return flow.as_planned() ? tr("planned %1").arg(bytes) : tr("not the planned %1").arg(bytes);
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
  if (!d) return text + tr(": nothing measured yet");
  text += tr(": %1 in memory").arg(qs(to_text(d->bytes.total())));
  if (const auto capacity = run_->view.capacity())
    text += tr(" of %1, %2 %").arg(qs(to_text(*capacity))).arg(d->bytes.total() / *capacity * 100, 0, 'f', 0);
  if (d->predicted)
    text += (d->beyond_prediction() ? tr("; more than the predicted peak of %1") : tr("; predicted peak %1"))
                .arg(qs(to_text(d->predicted->total())));
  if (d->sent)
    text += tr("; sent %1 %2")
                .arg(value_text(d->sent->bytes, Quantity::bytes), time_text(d->sent->seconds, d->sent->waited));
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
  f.header = QRectF(8, 0, width() - 16 - inset_, kTitleRow);
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

bool MeasuredMesh::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  for (size_t i = 0; i < grid_.devices.size(); ++i) {
    const int device = static_cast<int>(i);
    if (!device_at(device).contains(help->pos())) continue;
    QStringList lines{device_text(device)};
    if (const views::DeviceSnapshot* d = of_device(device))
      for (size_t c = 0; c < kMemoryCategories; ++c)
        if (const Bytes said = d->predicted ? d->predicted->bytes[c] : Bytes();
            d->bytes.bytes[c].value > 0 || said.value > 0)
          lines << category_text(static_cast<MemoryCategory>(c)) + u' ' + qs(to_text(d->bytes.bytes[c])) +
                       (d->predicted ? tr(", at the predicted peak %1").arg(qs(to_text(said))) : QString());
    QToolTip::showText(help->globalPos(), lines.join(u'\n'), this);
    return true;
  }
  QToolTip::hideText();
  return true;
}

void MeasuredMesh::mousePressEvent(QMouseEvent* event) {
  for (size_t i = 0; i < grid_.devices.size(); ++i)
    if (device_at(static_cast<int>(i)).contains(event->position())) {
      select_device(static_cast<int>(i));
      emit device_selected(selected_);
      return;
    }
}

// From device to device as they stand.
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

}  // namespace mw::ui
