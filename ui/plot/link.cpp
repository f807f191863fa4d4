// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/link.h"

#include <algorithm>

namespace mw::ui {

void PlotLink::become(Span range) {
  if (range == range_) return;
  range_ = range;
  emit range_changed();
}

void PlotLink::set_data(Span data) {
  data_ = data.size() > 0 ? data : Span{data.low, data.low + 1};
  if (follow_) become(data_);
}

void PlotLink::set_x(const QString& name, Quantity quantity) {
  x_name_ = name;
  x_quantity_ = quantity;
}

void PlotLink::set_cursor(std::optional<double> x) {
  if (x == cursor_) return;
  cursor_ = x;
  emit cursor_changed();
}

void PlotLink::set_playhead(std::optional<double> x) {
  if (x) x = std::clamp(*x, data_.low, data_.high);
  if (x == playhead_) return;
  playhead_ = x;
  emit cursor_changed();
}

void PlotLink::set_following(bool on) {
  if (on) become(data_);
  if (on == follow_) return;
  follow_ = on;
  emit following_changed(on);
}

void PlotLink::show_range(Span range) {
  set_following(false);
  // Never narrower than a few samples nor wider than all of them; never out of sight of the data.
  const double least = x_quantity_ == Quantity::count ? 4 : data_.size() / 2000;
  double width = std::clamp(range.size(), std::min(least, data_.size()), data_.size());
  const double low = std::clamp(range.low, data_.low, std::max(data_.low, data_.high - width));
  become({low, low + width});
}

void PlotLink::zoom(double factor, double around) {
  const double left = (around - range_.low) * factor, right = (range_.high - around) * factor;
  show_range({around - left, around + right});
}

void PlotLink::pan(double share) {
  const double by = range_.size() * share;
  show_range({range_.low + by, range_.high + by});
}

void PlotLink::reset() {
  set_cursor(std::nullopt);
  set_playhead(std::nullopt);
  data_ = {0, 1};
  set_following(true);
}

}  // namespace mw::ui
