// SPDX-License-Identifier: Apache-2.0
#include "core/views/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mw::views {

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
