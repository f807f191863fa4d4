// SPDX-License-Identifier: Apache-2.0
#include "core/compare/comparison_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mw::compare {
namespace {

constexpr size_t kFew = 24;     // number of steps up to which all are shown
constexpr double kWider = 1.6;  // ratio between consecutive shown steps

}  // namespace

std::vector<views::Point> step_differences(const views::RunView& baseline, const views::RunView& other,
                                           const std::string& metric) {
  const views::MetricSeries *a = baseline.metric(metric), *b = other.metric(metric);
  std::vector<views::Point> out;
  if (!a || !b) return out;
  for (size_t i = 0, j = 0; i < a->raw.size() && j < b->raw.size();) {  // both are sorted by step
    const views::Point p = a->raw[i], q = b->raw[j];
    if (p.x < q.x) {
      ++i;
    } else if (q.x < p.x) {
      ++j;
    } else {
      const double difference = q.y / p.y - 1;
      if (p.y != 0 && std::isfinite(difference)) out.push_back({p.x, difference});
      ++i, ++j;
    }
  }
  return out;
}

views::Point furthest_apart(const std::vector<views::Point>& differences) {
  views::Point out{0, std::numeric_limits<double>::quiet_NaN()};
  for (const views::Point& d : differences)
    if (!(std::abs(d.y) <= std::abs(out.y))) out = d;
  return out;
}

std::vector<long> steps_to_show(std::vector<long> steps) {
  if (steps.size() <= kFew) return steps;
  std::vector<long> out;
  double next = 0;
  for (const long step : steps)
    if (static_cast<double>(step) >= next || step == steps.back()) {
      out.push_back(step);
      next = std::max(static_cast<double>(step) + 1, static_cast<double>(step) * kWider);
    }
  return out;
}

}  // namespace mw::compare
