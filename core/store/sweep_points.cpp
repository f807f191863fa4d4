// SPDX-License-Identifier: Apache-2.0
#include "core/store/sweep_points.h"

namespace mw::store {
namespace {

constexpr size_t kMostGaps = 200'000, kMostRequests = 20'000, kMostSamples = 2'000;

}  // namespace

formats::BenchPoint as_recorded(formats::BenchPoint point) {
  size_t gaps = 0;
  for (const auto& r : point.requests) gaps += r.gaps_ms.size();
  if (gaps > kMostGaps)
    for (auto& r : point.requests) r.gaps_ms.clear();
  if (point.requests.size() > kMostRequests) point.requests.clear();
  if (const size_t every = (point.timeline.size() + kMostSamples - 1) / kMostSamples; every > 1) {
    size_t kept = 0;
    for (size_t i = 0; i < point.timeline.size(); i += every) point.timeline[kept++] = point.timeline[i];
    point.timeline.resize(kept);
  }
  return point;
}

std::vector<formats::BenchPoint> points_of(const std::vector<event::Point>& points) {
  std::vector<formats::BenchPoint> all;
  for (const event::Point& p : points)
    if (p.kind == "sweep") all.push_back(formats::bench_point(p.values));
  return all;
}

}  // namespace mw::store
