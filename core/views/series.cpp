// SPDX-License-Identifier: Apache-2.0
#include "core/views/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mw::views {
namespace {
constexpr size_t kFactor = 4;
constexpr int kShift = 2;  // log2(kFactor)
constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
}  // namespace

void Series::append(double x, double y) {
  if (!x_.empty() && !(x >= x_.back())) x = x_.back();
  x_.push_back(x);
  y_.push_back(std::isfinite(y) ? y : kGap);
  // Completes every block that ends with this sample.
  const size_t count = x_.size();
  Extremes block;
  for (size_t k = 0; count % (kFactor << (k * kShift)) == 0; ++k) {
    if (k == levels_.size()) levels_.emplace_back();
    if (k == 0) {
      for (size_t i = count - kFactor; i < count; ++i)
        if (!std::isnan(y_[i])) widen(block, {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)});
    } else {
      const auto& below = levels_[k - 1];
      block = {};
      for (size_t i = below.size() - kFactor; i < below.size(); ++i) widen(block, below[i]);
    }
    levels_[k].push_back(block);
  }
}

void Series::truncate(size_t count) {
  if (count >= x_.size()) return;
  x_.resize(count);
  y_.resize(count);
  for (size_t k = 0; k < levels_.size(); ++k) levels_[k].resize(count >> ((k + 1) * kShift));
  while (!levels_.empty() && levels_.back().empty()) levels_.pop_back();
}

void Series::truncate_from(double x) {
  truncate(static_cast<size_t>(std::lower_bound(x_.begin(), x_.end(), x) - x_.begin()));
}

// Keeps the earlier index among equals, so that the result does not depend on how the range is split into blocks.
void Series::widen(Extremes& e, Extremes other) const {
  if (other.lo == kNone) return;
  if (e.lo == kNone) {
    e = other;
    return;
  }
  if (y_[other.lo] < y_[e.lo]) e.lo = other.lo;
  if (y_[other.hi] > y_[e.hi]) e.hi = other.hi;
}

Series::Extremes Series::extremes(size_t begin, size_t end) const {
  Extremes e;
  for (size_t i = begin; i < end;) {
    // Takes the largest complete block that starts here and fits into the range.
    size_t k = 0;
    while (k < levels_.size() && i % (kFactor << (k * kShift)) == 0 && i + (kFactor << (k * kShift)) <= end) ++k;
    if (k == 0) {
      if (!std::isnan(y_[i])) widen(e, {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)});
      ++i;
    } else {
      widen(e, levels_[k - 1][i >> (k * kShift)]);
      i += size_t{1} << (k * kShift);
    }
  }
  return e;
}

std::pair<size_t, size_t> Series::window(double x0, double x1) const {
  const auto begin = std::lower_bound(x_.begin(), x_.end(), x0);
  const auto end = std::upper_bound(begin, x_.end(), x1);
  return {static_cast<size_t>(begin - x_.begin()), static_cast<size_t>(end - x_.begin())};
}

std::optional<size_t> Series::nearest(double x) const {
  if (x_.empty()) return std::nullopt;
  const auto at = static_cast<size_t>(std::lower_bound(x_.begin(), x_.end(), x) - x_.begin());
  if (at == 0) return 0;
  if (at == x_.size()) return at - 1;
  return x_[at] - x < x - x_[at - 1] ? at : at - 1;
}

std::optional<Range> Series::y_range(double x0, double x1) const {
  const auto [begin, end] = window(x0, x1);
  const Extremes e = extremes(begin, end);
  if (e.lo == kNone) return std::nullopt;
  return Range{y_[e.lo], y_[e.hi]};
}

std::optional<size_t> Series::max_index(size_t begin, size_t end) const {
  const Extremes e = extremes(begin, std::min(end, size()));
  if (e.hi == kNone) return std::nullopt;
  return e.hi;
}

std::vector<size_t> Series::decimate_indices(double x0, double x1, int columns) const {
  std::vector<size_t> out;
  if (empty() || columns < 1 || !(x0 <= x1)) return out;
  auto [begin, end] = window(x0, x1);
  const size_t first = begin > 0 ? begin - 1 : 0, last = end < size() ? end : size() - 1;
  if (last < first) return out;
  const size_t room = 2 * static_cast<size_t>(columns);
  if (last - first + 1 <= room + 2) {  // no need to decimate
    for (size_t i = first; i <= last; ++i) out.push_back(i);
    return out;
  }
  out.reserve(room + 2);
  out.push_back(first);
  size_t at = first + 1;
  for (int c = 0; c < columns && at < last; ++c) {
    const double edge = x0 + (x1 - x0) * (c + 1) / columns;
    const auto from = x_.begin() + static_cast<std::ptrdiff_t>(at), to = x_.begin() + static_cast<std::ptrdiff_t>(last);
    const auto stop = c + 1 == columns ? last : static_cast<size_t>(std::upper_bound(from, to, edge) - x_.begin());
    if (stop == at) continue;
    const Extremes e = extremes(at, stop);
    if (e.lo == kNone) {
      out.push_back(at);  // only gaps
    } else {
      out.push_back(std::min(e.lo, e.hi));
      if (e.lo != e.hi) out.push_back(std::max(e.lo, e.hi));
    }
    at = stop;
  }
  out.push_back(last);
  return out;
}

std::vector<Point> Series::decimate(double x0, double x1, int columns) const {
  std::vector<Point> out;
  for (const size_t i : decimate_indices(x0, x1, columns)) out.push_back((*this)[i]);
  return out;
}

bool Series::operator==(const Series& other) const {
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  return x_ == other.x_ && std::equal(y_.begin(), y_.end(), other.y_.begin(), other.y_.end(), same);
}

void Smoothed::follow(const Series& raw) {
  if (raw.size() < out_.size()) {
    out_.truncate(0);
    average_ = 0;
    decay_ = 1;
  }
  for (size_t i = out_.size(); i < raw.size(); ++i) {
    const Point p = raw[i];
    if (std::isnan(p.y)) {
      out_.append(p.x, p.y);
      continue;
    }
    average_ = weight_ * average_ + (1 - weight_) * p.y;
    decay_ *= weight_;
    out_.append(p.x, average_ / (1 - decay_));
  }
}

void Smoothed::set_weight(double weight, const Series& raw) {
  *this = Smoothed(std::clamp(weight, 0.0, 0.999999));
  follow(raw);
}

// In ascending order of x and y, a point is dominated if one before it has a y that is as low or lower, unless the two
// are equal.
std::vector<bool> pareto_front(std::span<const Point> points, Better x, Better y) {
  const double sign_x = x == Better::lower ? 1 : -1, sign_y = y == Better::lower ? 1 : -1;
  const auto at = [&](size_t i) { return std::pair(sign_x * points[i].x, sign_y * points[i].y); };
  std::vector<size_t> order;
  for (size_t i = 0; i < points.size(); ++i)
    if (std::isfinite(points[i].x) && std::isfinite(points[i].y)) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return at(a) < at(b); });
  std::vector<bool> front(points.size(), false);
  std::pair best(0.0, std::numeric_limits<double>::infinity());
  for (const size_t i : order) {
    front[i] = at(i).second < best.second || at(i) == best;
    if (front[i]) best = at(i);
  }
  return front;
}

}  // namespace mw::views
