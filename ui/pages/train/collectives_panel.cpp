// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/collectives_panel.h"

#include <QComboBox>

#include "ui/run_views/run_lines.h"

namespace mw::ui {

CollectivesPanel::CollectivesPanel(ChartLink& by_step, QWidget* parent)
    : QWidget(parent), amount_(new QComboBox(this)), by_(new QComboBox(this)) {
  auto* column = flush_layout<QVBoxLayout>(this);
  const auto chart = [&](const QString& unit, AxisQuantity quantity) {
    auto* p = new Chart({.title = tr("Collectives"),
                         .unit = unit,
                         .quantity = quantity,
                         .empty = tr("No traffic between devices yet"),
                         .from_zero = true},
                        by_step, this);
    column->addWidget(p);
    return p;
  };
  bytes_ = chart(tr("measured"), AxisQuantity::bytes);
  seconds_ = chart(tr("measured"), AxisQuantity::seconds);
  seconds_->setAccessibleName(tr("Collectives chart, seconds"));
  amount_->addItem(tr("Bytes"), static_cast<int>(views::TrafficAmount::bytes));
  amount_->addItem(tr("Seconds"), static_cast<int>(views::TrafficAmount::seconds));
  amount_->setAccessibleName(tr("Bytes or seconds of collectives"));
  amount_->setItemData(0, tr("Sum of the bytes sent by all devices"), Qt::ToolTipRole);
  amount_->setItemData(1, tr("Mean of the devices; waiting for other devices is shown separately"), Qt::ToolTipRole);
  by_->addItem(tr("By cause"), static_cast<int>(views::TrafficBy::cause));
  by_->addItem(tr("By kind"), static_cast<int>(views::TrafficBy::kind));
  by_->addItem(tr("By axis"), static_cast<int>(views::TrafficBy::axis));
  by_->setAccessibleName(tr("Grouping of the collectives"));
  for (QComboBox* c : {amount_, by_}) {
    c->setFont(small_font());
    connect(c, &QComboBox::activated, this, &CollectivesPanel::draw);
  }
  draw();
}

Chart& CollectivesPanel::shown() {
  return amount_->currentIndex() == 0 ? *bytes_ : *seconds_;
}

void CollectivesPanel::show_run(const RunPtr& run) {
  run_ = run;
  draw();
}

void CollectivesPanel::choose(views::TrafficBy by, views::TrafficAmount amount) {
  by_->setCurrentIndex(by_->findData(static_cast<int>(by)));
  amount_->setCurrentIndex(amount_->findData(static_cast<int>(amount)));
  draw();
}

void CollectivesPanel::draw() {
  const auto amount = static_cast<views::TrafficAmount>(amount_->currentData().toInt());
  const auto by = static_cast<views::TrafficBy>(by_->currentData().toInt());
  const bool seconds = amount == views::TrafficAmount::seconds;
  shown().set_stack(traffic_stack(run_, by, amount));
  bytes_->setVisible(!seconds);
  seconds_->setVisible(seconds);
  for (QComboBox* c : {amount_, by_}) c->raise();
}

void CollectivesPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  int right = width() - 4;
  for (QComboBox* c : {by_, amount_}) {
    const int wide = std::min(c->sizeHint().width(), width() / 4);
    right -= wide;
    c->setGeometry(right, 2, wide, 22);
    right -= 2;
  }
  for (Chart* p : {bytes_, seconds_}) p->set_header_inset(width() - 2 - right);
}

}  // namespace mw::ui

#include "moc_collectives_panel.cpp"
