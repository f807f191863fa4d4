// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/device_memory_view.h"

#include <QComboBox>
#include <QStackedWidget>
#include <algorithm>
#include <cmath>

#include "core/views/step_snapshot.h"
#include "ui/charts/chart_strokes.h"
#include "ui/run_views/run_lines.h"

namespace mw::ui {
namespace {
constexpr double kGridHeader = 25, kGridTitle = 14, kGridGap = 6;
}

MemoryGrid::MemoryGrid(ChartLink& by_time, QWidget* parent) : QWidget(parent), link_(by_time) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Chart);
  setAccessibleName(tr("Memory of every device"));
  connect(&link_, &ChartLink::range_changed, this, &MemoryGrid::refresh);
  connect(&link_, &ChartLink::cursor_changed, this, qOverload<>(&QWidget::update));
}

void MemoryGrid::show_run(const RunPtr& run) {
  run_ = run;
  refresh();
}

void MemoryGrid::refresh() {
  stale_ = true;
  if (isVisible()) setAccessibleDescription(summary());
  update();
}

QString MemoryGrid::summary() const {
  QStringList parts;
  if (run_)
    for (const auto& [device, memory] : run_->view.memory())
      parts << tr("device %1 at most %2").arg(device).arg(qs(to_text(memory.peak)));
  return parts.join(u", "_s);
}

// Chooses the number of columns so that cells are about three times as wide as high.
int MemoryGrid::columns() const {
  const int devices = run_ ? std::max(1, static_cast<int>(run_->view.memory().size())) : 1;
  const double room = std::max(1.0, height() - kGridHeader);
  int best = 1;
  double best_off = INFINITY;
  for (int c = 1; c <= devices; ++c) {
    const int rows = (devices + c - 1) / c;
    const double off =
        std::abs(std::log(width() / static_cast<double>(c) / (room / rows) / 2.6)) + 0.15 * (rows * c - devices);
    if (off >= best_off) continue;
    best_off = off;
    best = c;
  }
  return best;
}

QRectF MemoryGrid::cell(int index) const {
  const int across = columns(), devices = run_ ? static_cast<int>(run_->view.memory().size()) : 1;
  const int rows = std::max(1, (devices + across - 1) / across);
  const double w = (width() - 16 - kGridGap * (across - 1)) / across;
  const double h = (height() - kGridHeader - 6 - kGridGap * (rows - 1)) / rows;
  const int column = index % across, row = index / across;
  return {8 + column * (w + kGridGap), kGridHeader + row * (h + kGridGap), w, h};
}

QRectF MemoryGrid::plot_area(int index) const {
  return cell(index).adjusted(0, kGridTitle, 0, 0);
}

int MemoryGrid::device_at(QPointF at) const {
  int index = 0;
  if (run_)
    for (const auto& [device, memory] : run_->view.memory())
      if (cell(index++).contains(at)) return device;
  return -1;
}

double MemoryGrid::to_x(const QRectF& area, double time_s) const {
  return area.left() + (time_s - link_.range().low) / link_.range().size() * area.width();
}

double MemoryGrid::time_at(int index, double pixel) const {
  const QRectF area = plot_area(index);
  return link_.range().low + (pixel - area.left()) / area.width() * link_.range().size();
}

// All cells have the same scale, which includes the capacity if the data comes near it.
double MemoryGrid::highest() const {
  double most = 1;
  for (const auto& [device, memory] : run_->view.memory())
    most = std::max(most, static_cast<double>(memory.peak.value));
  for (const LevelLine& level : memory_levels(run_))
    if (level.value > most && level.value < most * 2.2) most = level.value;
  return most * 1.06;
}

void MemoryGrid::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  const qreal ratio = devicePixelRatioF();
  if (stale_ || cache_.size() != size() * ratio) {
    cache_ = QPixmap(size() * ratio);
    cache_.setDevicePixelRatio(ratio);
    cache_.fill(t.panel);
    QPainter still(&cache_);
    paint_still(still);
    stale_ = false;
  }
  QPainter p(this);
  p.drawPixmap(0, 0, cache_);
  const int devices = run_ ? static_cast<int>(run_->view.memory().size()) : 0;
  for (int i = 0; i < devices; ++i) {
    const QRectF area = plot_area(i);
    for (const auto& [time, color] : {std::pair{link_.playhead(), t.accent}, std::pair{link_.cursor(), t.muted}}) {
      if (!time || *time < link_.range().low || *time > link_.range().high) continue;
      const double x = to_x(area, *time);
      p.setPen(QPen(color, 1.5));
      p.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
  }
  paint_edge(p, *this);
}

void MemoryGrid::paint_still(QPainter& p) const {
  const Theme& t = theme();
  const QFont bold = demi_bold(small_font());
  p.setFont(bold);
  p.setPen(t.text);
  p.drawText(QPointF(10, 17), tr("Memory"));
  const double after = 10 + QFontMetricsF(bold).horizontalAdvance(tr("Memory")) + 6;
  p.setFont(small_font());
  p.setPen(t.muted);
  p.drawText(QPointF(after, 17), tr("measured, one scale"));
  if (!run_) return;
  int index = 0;
  for (const auto& [device, memory] : run_->view.memory()) {
    const QRectF box = cell(index), area = plot_area(index++);
    if (area.height() < 4) continue;
    p.fillRect(area, mix(t.panel, t.text, 0.04));
    paint_cell(p, area, device, memory);
    p.setPen(t.text);
    const QRectF title(box.left(), box.top(), box.width(), kGridTitle);
    const QString name = QString::number(device);
    p.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, name);
    p.setPen(t.muted);
    const QString peak = qs(to_text(memory.peak));
    if (p.fontMetrics().horizontalAdvance(name + peak) + 8 < title.width())
      p.drawText(title, Qt::AlignRight | Qt::AlignVCenter, peak);
  }
}

void MemoryGrid::paint_cell(QPainter& p, const QRectF& area, int device, const views::MemoryTimeline& memory) const {
  const double scale = area.height() / highest();
  const AxisRange x = link_.range();
  const auto at = memory.decimate(views::Against::time, x.low, x.high, std::max(2, static_cast<int>(area.width()) / 2));
  std::vector<double> floor(at.size(), 0.0);
  p.save();
  p.setClipRect(area);
  p.setPen(Qt::NoPen);
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    QPolygonF top, bottom;
    for (size_t i = 0; i < at.size(); ++i) {
      const views::MemoryPoint& point = memory.points[at[i]];
      const double px = to_x(area, point.time_s);
      bottom << QPointF(px, area.bottom() - floor[i] * scale);
      floor[i] += static_cast<double>(point.bytes[category].value);
      top << QPointF(px, area.bottom() - floor[i] * scale);
    }
    std::reverse(bottom.begin(), bottom.end());
    p.setBrush(mix(theme().panel, theme().memory(category), 0.88));
    p.drawPolygon(top + bottom);
  }
  p.restore();
  for (const LevelLine& level : memory_levels(run_, device))
    paint_level(p, area, area.bottom() - level.value * scale, level.color, pen_style(level.origin));
}

void MemoryGrid::paint_level(QPainter& p, const QRectF& area, double y, const QColor& color, Qt::PenStyle style) const {
  if (y < area.top()) return;  // far above the data: shown only in the single chart
  p.setPen(QPen(color, 1.2, style));
  p.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
}

void MemoryGrid::mouseMoveEvent(QMouseEvent* event) {
  const int devices = run_ ? static_cast<int>(run_->view.memory().size()) : 0;
  for (int i = 0; i < devices; ++i)
    if (plot_area(i).contains(event->position())) return link_.set_cursor(time_at(i, event->position().x()));
  link_.set_cursor(std::nullopt);
}

void MemoryGrid::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !run_) return;
  for (int i = 0; i < static_cast<int>(run_->view.memory().size()); ++i)
    if (plot_area(i).contains(event->position())) return link_.set_playhead(time_at(i, event->position().x()));
}

void MemoryGrid::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int device = device_at(event->position()); device >= 0) emit device_chosen(device);
}

void MemoryGrid::leaveEvent(QEvent*) {
  link_.set_cursor(std::nullopt);
}

void MemoryGrid::keyPressEvent(QKeyEvent* event) {
  const double at = link_.playhead().value_or(std::min(link_.range().high, link_.data().high));
  if (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right)
    return link_.set_playhead(link_.x_beside(at, event->key() == Qt::Key_Left ? -1 : 1));
  if (event->key() == Qt::Key_Escape || event->key() == Qt::Key_End) {
    link_.set_playhead(std::nullopt);
    return link_.set_following(true);
  }
  QWidget::keyPressEvent(event);
}

DeviceMemoryView::DeviceMemoryView(ChartLink& by_time, QWidget* parent)
    : QWidget(parent),
      stack_(new QStackedWidget(this)),
      chart_(new Chart({.title = tr("Memory"), .quantity = AxisQuantity::bytes, .from_zero = true}, by_time)),
      grid_(new MemoryGrid(by_time)),
      selector_(new QComboBox(this)) {
  auto* column = flush_layout<QVBoxLayout>(this);
  column->addWidget(stack_);
  stack_->addWidget(chart_);
  stack_->addWidget(grid_);
  selector_->setAccessibleName(tr("Device of the memory chart"));
  selector_->setToolTip(tr("Show the device with the largest memory, all devices, or one device"));
  selector_->setFont(small_font());
  selector_->hide();
  connect(selector_, &QComboBox::activated, this, [this](int at) { choose(selector_->itemData(at).toInt()); });
  connect(grid_, &MemoryGrid::device_chosen, this, &DeviceMemoryView::choose);
}

void DeviceMemoryView::show_run(const RunPtr& run) {
  if (run != run_) offered_.clear();
  run_ = run;
  fill_selector();
  show_chosen();
}

void DeviceMemoryView::choose(int device) {
  chosen_ = device;
  const QSignalBlocker quiet(selector_);
  selector_->setCurrentIndex(selector_->findData(device));
  show_chosen();
}

void DeviceMemoryView::fill_selector() {
  std::vector<int> devices;
  if (run_)
    for (const auto& [device, memory] : run_->view.memory()) devices.push_back(device);
  if (devices == offered_) return;
  offered_ = devices;
  const QSignalBlocker quiet(selector_);
  selector_->clear();
  selector_->addItem(tr("Largest device"), kLargest);
  selector_->addItem(tr("All devices"), kAll);
  for (const int device : devices) selector_->addItem(tr("Device %1").arg(device), device);
  if (selector_->findData(chosen_) < 0) chosen_ = kLargest;
  selector_->setCurrentIndex(selector_->findData(chosen_));
  selector_->setVisible(devices.size() > 1);
  place_selector();
}

void DeviceMemoryView::show_chosen() {
  const bool many = offered_.size() > 1;
  const int before = device_;
  device_ = chosen_ >= 0 ? chosen_ : run_ ? views::largest_device(run_->view).value_or(0) : 0;
  const bool all = many && chosen_ == kAll;
  stack_->setCurrentIndex(all ? 1 : 0);
  grid_->show_run(all ? run_ : nullptr);
  chart_->set_stack(memory_stack(run_, device_));
  chart_->set_empty_text(absent_text(run_, Comes::with_the_model));
  chart_->set_levels(memory_levels(run_, device_));
  chart_->set_unit(many ? tr("of device %1, measured").arg(device_) : QString());
  selector_->raise();
  if (before != device_) emit device_changed(device_);
}

void DeviceMemoryView::place_selector() {
  const int wide = selector_->isHidden() ? 0 : std::min(selector_->sizeHint().width(), width() / 3);
  chart_->set_header_inset(wide > 0 ? wide + 4 : 0);
  selector_->setGeometry(width() - wide - 4, 2, wide, 22);
}

void DeviceMemoryView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place_selector();
}

}  // namespace mw::ui

#include "moc_device_memory_view.cpp"
