// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/device_memory.h"

#include <QComboBox>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "core/views/step_snapshot.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

DeviceMemory::DeviceMemory(ChartLink& by_time, QWidget* parent)
    : QWidget(parent),
      stack_(new QStackedWidget(this)),
      chart_(new Chart({.title = tr("Memory"), .quantity = Quantity::bytes, .from_zero = true}, by_time)),
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
  connect(grid_, &MemoryGrid::device_chosen, this, &DeviceMemory::choose);
}

void DeviceMemory::show_run(const RunPtr& run) {
  if (run != run_) offered_.clear();
  run_ = run;
  fill_selector();
  show_chosen();
}

void DeviceMemory::choose(int device) {
  chosen_ = device;
  const QSignalBlocker quiet(selector_);
  selector_->setCurrentIndex(selector_->findData(device));
  show_chosen();
}

void DeviceMemory::fill_selector() {
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

void DeviceMemory::show_chosen() {
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

void DeviceMemory::place_selector() {
  const int wide = selector_->isHidden() ? 0 : std::min(selector_->sizeHint().width(), width() / 3);
  chart_->set_header_inset(wide > 0 ? wide + 4 : 0);
  selector_->setGeometry(width() - wide - 4, 2, wide, 22);
}

void DeviceMemory::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place_selector();
}

}  // namespace mw::ui

#include "moc_device_memory.cpp"
