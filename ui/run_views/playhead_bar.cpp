// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/playhead_bar.h"

#include <QSlider>
#include <algorithm>
#include <cmath>

namespace mw::ui {

PlayheadBar::PlayheadBar(ChartLink& link, QWidget* parent, Controls controls)
    : QWidget(parent),
      link_(link),
      head_(new QSlider(Qt::Horizontal, this)),
      smooth_(new QSlider(Qt::Horizontal, this)),
      where_(new QLabel(this)),
      smooth_label_(muted_label({}, this)),
      live_(new QPushButton(tr("Live"), this)) {
  auto* row = make_layout<QHBoxLayout>(this, {2, 0, 2, 0}, 8);
  auto* name = muted_label(tr("Playhead"), this);
  name->setBuddy(head_);
  row->addWidget(name);
  row->addWidget(head_, 1);
  where_->setMinimumWidth(76);
  row->addWidget(where_);
  row->addWidget(live_);
  row->addSpacing(10);
  smooth_label_->setMinimumWidth(98);
  row->addWidget(smooth_label_);
  smooth_->setFixedWidth(90);
  row->addWidget(smooth_);
  head_->setAccessibleName(tr("Playhead step"));
  head_->setToolTip(controls == Controls::all ? tr("Show all charts, the mesh and the samples at one step")
                                              : tr("Show all runs at the same step or time"));
  if (controls != Controls::all)
    for (QWidget* widget : std::initializer_list<QWidget*>{live_, smooth_, smooth_label_}) widget->hide();
  live_->setCheckable(true);
  live_->setToolTip(tr("Follow the newest step, or hold the current one"));
  smooth_->setAccessibleName(tr("Smoothing of the curves"));
  smooth_->setToolTip(
      tr("Weight of the moving average for loss, gradient norm and tokens per second; 0 shows raw values"));
  smooth_->setRange(0, 99);
  smooth_->setValue(90);
  smooth_label_->setText(tr("Smoothing %1").arg(0.90, 0, 'f', 2));
  connect(head_, &QSlider::valueChanged, this, [this](int at) { link_.set_playhead(at / scale()); });
  connect(live_, &QPushButton::clicked, this, [this](bool on) {
    link_.set_playhead(on ? std::nullopt : std::optional(link_.data().high));
    if (on) link_.set_following(true);
  });
  connect(smooth_, &QSlider::valueChanged, this, [this](int v) {
    smooth_label_->setText(tr("Smoothing %1").arg(v / 100.0, 0, 'f', 2));
    emit smoothing_changed(v / 100.0);
  });
  connect(&link_, &ChartLink::cursor_changed, this, &PlayheadBar::follow_link);
  connect(&link_, &ChartLink::following_changed, this, &PlayheadBar::follow_link);
  follow_link();
}

double PlayheadBar::smoothing() const {
  return smooth_->value() / 100.0;
}

double PlayheadBar::scale() const {
  constexpr double kPositions = 1000;
  return link_.x_quantity() == AxisQuantity::count ? 1 : kPositions / std::max(1e-9, link_.data().size());
}

void PlayheadBar::set_data(AxisRange range) {
  const QSignalBlocker quiet(head_);
  head_->setRange(static_cast<int>(range.low * scale()), static_cast<int>(range.high * scale()));
  head_->setEnabled(range.high > range.low);
  follow_link();
}

void PlayheadBar::follow_link() {
  const QSignalBlocker quiet(head_);
  const double at = link_.playhead().value_or(link_.data().high);
  head_->setValue(static_cast<int>(std::lround(at * scale())));
  where_->setText(link_.x_quantity() == AxisQuantity::count ? tr("step %1").arg(std::lround(at)) : link_.x_text(at));
  live_->setChecked(link_.is_following() && !link_.playhead());
}

void PlayheadBar::set_reading(const QString& text) {
  where_->setToolTip(text);
  head_->setAccessibleDescription(text);
}

void PlayheadBar::step_by(int steps) {
  link_.set_playhead(std::round(link_.playhead().value_or(link_.data().high)) + steps);
}

}  // namespace mw::ui

#include "moc_playhead_bar.cpp"
