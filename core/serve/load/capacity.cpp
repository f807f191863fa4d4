// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/capacity.h"

#include <algorithm>
#include <cmath>

#include "core/serve/load/saturation.h"

namespace mw::serve {
namespace {

using formats::BenchPoint;
using formats::LatencyStats;

// The value that an SLO limits: the 99th percentile if the source has it, otherwise the median.
double slo_value(const LatencyStats& intended, const LatencyStats& sent) {
  const LatencyStats& stats = intended.known() ? intended : sent;
  const double p99 = stats.percentile(99);
  return std::isnan(p99) ? stats.median : p99;
}

struct RatePoint {  // means over the repeats of one request rate
  double rate = 0;
  double ttft = 0, tpot = 0, e2e = 0;  // ms; NaN: unknown
  double latency = 0;                  // median of the whole request, ms
  int repeats = 0, overloaded = 0;
  bool is_overloaded() const { return 2 * overloaded > repeats; }
};

std::vector<RatePoint> rates_of(const std::vector<BenchPoint>& points) {
  std::vector<RatePoint> all;
  for (const BenchPoint& p : points) {
    if (!std::isfinite(p.request_rate) || p.completed == 0) continue;
    auto at = std::find_if(all.begin(), all.end(), [&](const RatePoint& r) { return r.rate == p.request_rate; });
    if (at == all.end()) at = all.insert(at, RatePoint{.rate = p.request_rate});
    at->ttft += slo_value(p.intended_ttft, p.ttft);
    at->tpot += slo_value(p.tpot, p.tpot);
    at->e2e += slo_value(p.intended_e2el, p.e2el);
    at->latency += p.intended_e2el.known() ? p.intended_e2el.median : p.e2el.median;
    at->overloaded += p.verdict == to_string(Saturation::overloaded) ? 1 : 0;
    ++at->repeats;
  }
  for (RatePoint& r : all)
    for (double* sum : {&r.ttft, &r.tpot, &r.e2e, &r.latency}) *sum /= r.repeats;
  std::sort(all.begin(), all.end(), [](const RatePoint& a, const RatePoint& b) { return a.rate < b.rate; });
  return all;
}

bool all_meet(const RatePoint& r, const Slo& slo) {
  const auto within = [](double value, double limit) { return limit <= 0 || value <= limit; };
  return !r.is_overloaded() && within(r.ttft, slo.ttft_ms) && within(r.tpot, slo.tpot_ms) && within(r.e2e, slo.e2e_ms);
}

// The rate at which the first limit is reached between `good`, which meets all, and `bad`, which does not.
double interpolate_slo(const RatePoint& good, const RatePoint& bad, const Slo& slo) {
  double share = 1;
  bool crossed = false;
  const auto cross = [&](double below, double above, double limit) {
    if (limit <= 0 || !(above > limit)) return;
    crossed = true;
    share = std::min(share, (limit - below) / (above - below));
  };
  cross(good.ttft, bad.ttft, slo.ttft_ms);
  cross(good.tpot, bad.tpot, slo.tpot_ms);
  cross(good.e2e, bad.e2e, slo.e2e_ms);
  return crossed ? good.rate + share * (bad.rate - good.rate) : good.rate;
}

// Kneedle (Satopaa et al., 2011) without smoothing: with both axes scaled to 0..1, the point farthest below the chord.
double find_knee(const std::vector<RatePoint>& rates) {
  if (rates.size() < 3) return formats::kUnknown;
  const RatePoint &first = rates.front(), &last = rates.back();
  if (!(last.latency > first.latency)) return formats::kUnknown;
  double farthest = 0.05, knee = formats::kUnknown;  // a nearly straight curve has no knee
  for (const RatePoint& r : rates) {
    const double distance =
        (r.rate - first.rate) / (last.rate - first.rate) - (r.latency - first.latency) / (last.latency - first.latency);
    if (distance > farthest) farthest = distance, knee = r.rate;
  }
  return knee;
}

}  // namespace

Capacity find_capacity(const std::vector<BenchPoint>& same_length, const Slo& slo) {
  const std::vector<RatePoint> rates = rates_of(same_length);
  Capacity capacity;
  capacity.knee = find_knee(rates);
  // Searches from above, because at low rates a cold cache or too few requests can miss an SLO that higher rates meet.
  const auto above =
      std::find_if(rates.rbegin(), rates.rend(), [&](const RatePoint& r) { return all_meet(r, slo); }).base();
  if (above == rates.begin()) return capacity;
  const RatePoint& best = *(above - 1);
  capacity.beyond_last = above == rates.end();
  capacity.at_slo = capacity.beyond_last ? best.rate : interpolate_slo(best, *above, slo);
  for (auto r = rates.begin(); r != above; ++r)
    if (!all_meet(*r, slo)) capacity.failing_below.push_back(r->rate);
  return capacity;
}

}  // namespace mw::serve
