// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_link.h"

#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"

namespace mw::ui {
namespace {

const Tick& nearest(const std::vector<Tick>& stops, double x) {
  return *std::min_element(stops.begin(), stops.end(),
                           [x](const Tick& a, const Tick& b) { return std::abs(a.value - x) < std::abs(b.value - x); });
}

}  // namespace

ChartLink::ChartLink(QObject* parent) : QObject(parent) {
  constexpr int kTurnMs = 16;
  turn_.setSingleShot(true);
  turn_.setInterval(kTurnMs);
  connect(&turn_, &QTimer::timeout, this, &ChartLink::give_turn);
}

void ChartLink::give_turn() {
  std::erase_if(waiting_, [](const QPointer<QWidget>& chart) { return !chart || !chart->isVisible(); });
  next_ = waiting_.empty() ? nullptr : waiting_.front();
  if (!next_) return;
  waiting_.pop_front();
  next_->update();
  turn_.start();
}

bool ChartLink::take_turn(QWidget& chart) {
  if (growth_ == Growth::complete || !following_) return true;
  const bool is_free = !turn_.isActive() && waiting_.empty();
  if (is_free || next_ == &chart) {
    next_ = nullptr;
    turn_.start();
    return true;
  }
  if (std::find(waiting_.begin(), waiting_.end(), &chart) == waiting_.end()) waiting_.emplace_back(&chart);
  if (!turn_.isActive()) turn_.start();
  return false;
}

void ChartLink::set_range(AxisRange range) {
  if (range == range_) return;
  range_ = range;
  emit range_changed();
}

AxisRange ChartLink::followed_range() const {
  constexpr double kRoom = 1.1, kLeastFilled = 0.85;
  if (growth_ == Growth::complete) return data_;
  const bool contains_data = range_.low == data_.low && range_.high >= data_.high;
  if (contains_data && data_.size() >= kLeastFilled * range_.size()) return range_;
  return {data_.low, data_.low + kRoom * data_.size()};
}

void ChartLink::set_data(AxisRange data, Growth growth) {
  data_ = data.size() > 0 ? data : AxisRange{data.low, data.low + 1};
  growth_ = growth;
  if (following_) set_range(followed_range());
}

void ChartLink::set_x(const QString& name, AxisQuantity quantity) {
  x_name_ = name;
  x_quantity_ = quantity;
}

void ChartLink::set_stops(std::vector<Tick> stops) {
  stops_ = std::move(stops);
  set_cursor(cursor_);
  set_playhead(playhead_);
}

QString ChartLink::x_text(double x) const {
  return stops_.empty() ? value_text(x, x_quantity_) : nearest(stops_, x).label;
}

double ChartLink::x_beside(double x, int by) const {
  if (stops_.empty()) return x + by * (x_quantity_ == AxisQuantity::count ? 1 : range_.size() / 200);
  const auto at = std::lower_bound(stops_.begin(), stops_.end(), x - 1e-9,
                                   [](const Tick& stop, double value) { return stop.value < value; });
  const auto wanted = (at - stops_.begin()) + by;
  return stops_[static_cast<size_t>(std::clamp<std::ptrdiff_t>(wanted, 0, std::ssize(stops_) - 1))].value;
}

std::optional<double> ChartLink::snapped(std::optional<double> x) const {
  if (!x || stops_.empty()) return x;
  return nearest(stops_, *x).value;
}

void ChartLink::set_cursor(std::optional<double> x) {
  x = snapped(x);
  if (x == cursor_) return;
  cursor_ = x;
  emit cursor_changed();
}

void ChartLink::set_playhead(std::optional<double> x) {
  if (x) x = snapped(std::clamp(*x, data_.low, data_.high));
  if (x == playhead_) return;
  playhead_ = x;
  emit cursor_changed();
}

void ChartLink::set_following(bool on) {
  if (on) set_range(followed_range());
  if (on == following_) return;
  following_ = on;
  emit following_changed(on);
}

void ChartLink::show_range(AxisRange range) {
  set_following(false);
  // At least a few samples, at most all of them, always overlapping the data.
  const double least = !stops_.empty() ? 1 : x_quantity_ == AxisQuantity::count ? 4 : data_.size() / 2000;
  double width = std::clamp(range.size(), std::min(least, data_.size()), data_.size());
  const double low = std::clamp(range.low, data_.low, std::max(data_.low, data_.high - width));
  set_range({low, low + width});
}

void ChartLink::zoom(double factor, double around) {
  const double left = (around - range_.low) * factor, right = (range_.high - around) * factor;
  show_range({around - left, around + right});
}

void ChartLink::pan(double share) {
  const double by = range_.size() * share;
  show_range({range_.low + by, range_.high + by});
}

void ChartLink::reset() {
  set_cursor(std::nullopt);
  set_playhead(std::nullopt);
  stops_.clear();
  data_ = {0, 1};
  growth_ = Growth::complete;
  set_following(true);
}

}  // namespace mw::ui

#include "moc_chart_link.cpp"
