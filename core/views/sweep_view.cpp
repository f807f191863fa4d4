// SPDX-License-Identifier: Apache-2.0
#include "core/views/sweep_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/json.h"

namespace mw::views {
namespace {

formats::BenchSet set_of(const Json& info) {
  const Json* set = find_member(info, "set");
  if (!set) return {};
  try {
    return formats::bench_set(*set);
  } catch (const Error&) {  // from another version or program; the points are still valid
    return {};
  }
}

double limit(const Json& slo, const char* key) {
  const Json* value = find_member(slo, key);
  return value && value->is_number() && std::isfinite(value->get<double>()) ? std::max(0.0, value->get<double>()) : 0;
}

options::Slo slo_of(const Json& info) {
  const Json* slo = find_member(info, "slo");
  if (!slo) return {};
  return {.ttft_ms = limit(*slo, "ttft_ms"), .tpot_ms = limit(*slo, "tpot_ms"), .e2e_ms = limit(*slo, "e2e_ms")};
}

// Sorts by offered rate, closed loops by users.
bool before(const formats::BenchPoint& a, const formats::BenchPoint& b) {
  if (std::isnan(a.request_rate) != std::isnan(b.request_rate)) return std::isnan(a.request_rate);
  return std::isnan(a.request_rate) ? a.max_concurrency < b.max_concurrency : a.request_rate < b.request_rate;
}

void add_lines(SweepView& view) {
  for (size_t i = 0; i < view.set.points.size(); ++i) {
    const int len = view.set.points[i].input_len;
    const auto at = std::lower_bound(view.lines.begin(), view.lines.end(), len,
                                     [](const SweepLine& line, int wanted) { return line.input_len < wanted; });
    const bool known = at != view.lines.end() && at->input_len == len;
    (known ? at : view.lines.insert(at, {.input_len = len, .points = {}, .capacity = {}}))->points.push_back(i);
  }
  for (SweepLine& line : view.lines) {
    std::stable_sort(line.points.begin(), line.points.end(),
                     [&](size_t a, size_t b) { return before(view.set.points[a], view.set.points[b]); });
    std::vector<formats::BenchPoint> points;
    for (const size_t i : line.points) {
      // The capacity does not need single requests; moves them out instead of copying them.
      formats::BenchPoint& p = view.set.points[i];
      auto requests = std::exchange(p.requests, {});
      points.push_back(p);
      p.requests = std::move(requests);
    }
    line.capacity = serve::find_capacity(points, view.slo);
  }
}

}  // namespace

SweepView sweep_view(formats::BenchSet set, const options::Slo& slo) {
  SweepView view{.set = std::move(set), .slo = slo};
  add_lines(view);
  view.findings = audit::audit(view.set);
  return view;
}

GrowingSweep::GrowingSweep(const Json& info) : set_(set_of(info)), slo_(slo_of(info)) {
  if (const Json* name = find_member(info, "name"); name && name->is_string()) set_.name = name->get<std::string>();
}

void GrowingSweep::add(const event::Point& point) {
  if (point.kind != "sweep") return;
  try {
    set_.points.push_back(formats::bench_point(point.values));
    for (auto& r : set_.points.back().requests) r.gaps_ms = {};
  } catch (const Error&) {  // from another version or program; other points are still valid
    ++ignored_;
  }
}

SweepView GrowingSweep::view() const {
  return GrowingSweep(*this).take();
}

SweepView GrowingSweep::take() {
  SweepView view = sweep_view(std::move(set_), slo_);
  view.ignored = ignored_;
  return view;
}

SweepView sweep_view(const RunView& run) {
  GrowingSweep sweep(run.info());
  for (const event::Point& point : run.points()) sweep.add(point);
  return sweep.take();
}

}  // namespace mw::views
