// SPDX-License-Identifier: Apache-2.0
// From points of one input length to what a server can take, and from values to how many are needed.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "core/serve/load/sweep.h"

namespace mw::serve {
namespace {

constexpr double kNormal95 = 1.959964;  // half width of a 95 % interval, in deviations

using formats::BenchPoint;
using formats::LatencyStats;

// Of an SLO: the 99th percentile where the source has it, else the median; repeats of a rate are averaged.
double judged(const LatencyStats& intended, const LatencyStats& sent) {
  const LatencyStats& stats = intended.known() ? intended : sent;
  const double p99 = stats.percentile(99);
  return std::isnan(p99) ? stats.median : p99;
}

struct Rate {
  double rate = 0;
  double ttft = 0, tpot = 0, e2e = 0;  // ms, sums until averaged; NaN: not known
  double latency = 0;                  // median of the whole request
  int repeats = 0, overloaded = 0;
  bool is_overloaded() const { return 2 * overloaded > repeats; }
};

std::vector<Rate> rates_of(const std::vector<BenchPoint>& points) {
  std::vector<Rate> all;
  for (const BenchPoint& p : points) {
    if (!std::isfinite(p.request_rate) || p.completed == 0) continue;
    auto at = std::find_if(all.begin(), all.end(), [&](const Rate& r) { return r.rate == p.request_rate; });
    if (at == all.end()) at = all.insert(at, Rate{.rate = p.request_rate});
    at->ttft += judged(p.intended_ttft, p.ttft);
    at->tpot += judged(p.tpot, p.tpot);
    at->e2e += judged(p.intended_e2el, p.e2el);
    at->latency += p.intended_e2el.known() ? p.intended_e2el.median : p.e2el.median;
    at->overloaded += p.verdict == to_string(Saturation::overloaded) ? 1 : 0;
    ++at->repeats;
  }
  for (Rate& r : all)
    for (double* sum : {&r.ttft, &r.tpot, &r.e2e, &r.latency}) *sum /= r.repeats;
  std::sort(all.begin(), all.end(), [](const Rate& a, const Rate& b) { return a.rate < b.rate; });
  return all;
}

bool meets(const Rate& r, const Slo& slo) {
  const auto within = [](double value, double limit) { return limit <= 0 || value <= limit; };
  return !r.is_overloaded() && within(r.ttft, slo.ttft_ms) && within(r.tpot, slo.tpot_ms) && within(r.e2e, slo.e2e_ms);
}

// Where the first of the limits is crossed between a rate that meets all and one that does not.
double crossing(const Rate& good, const Rate& bad, const Slo& slo) {
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

// Kneedle (Satopaa et al., 2011) without its smoothing: both axes from 0 to 1, farthest below the chord.
double knee_of(const std::vector<Rate>& rates) {
  if (rates.size() < 3) return formats::kUnknown;
  const Rate &first = rates.front(), &last = rates.back();
  if (!(last.latency > first.latency)) return formats::kUnknown;
  double farthest = 0.05, knee = formats::kUnknown;  // nearly straight curves have none
  for (const Rate& r : rates) {
    const double distance =
        (r.rate - first.rate) / (last.rate - first.rate) - (r.latency - first.latency) / (last.latency - first.latency);
    if (distance > farthest) farthest = distance, knee = r.rate;
  }
  return knee;
}

double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

double normal_quantile(double p) {
  double low = -9, high = 9;
  while (high - low > 1e-9) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return low;
}

// Bofinger's bandwidth for the slope of a quantile function (Koenker, Quantile Regression, 3.4.1), kept inside (0, 1).
double bandwidth(double p, double n) {
  const double z = normal_quantile(p);
  const double h = std::pow(4.5 * std::pow(normal_density(z), 4) / std::pow(2 * z * z + 1, 2) / n, 0.2);
  return std::min({h, 0.9 * p, 0.9 * (1 - p)});
}

}  // namespace

Capacity find_capacity(const std::vector<BenchPoint>& same_length, const Slo& slo) {
  const std::vector<Rate> rates = rates_of(same_length);
  Capacity capacity;
  capacity.knee = knee_of(rates);
  // From above: at low rates a cold cache or too few requests can fail the SLO that higher rates meet.
  const auto above = std::find_if(rates.rbegin(), rates.rend(), [&](const Rate& r) { return meets(r, slo); }).base();
  if (above == rates.begin()) return capacity;
  const Rate& best = *(above - 1);
  capacity.beyond_last = above == rates.end();
  capacity.at_slo = capacity.beyond_last ? best.rate : crossing(best, *above, slo);
  for (auto r = rates.begin(); r != above; ++r)
    if (!meets(*r, slo)) capacity.failing_below.push_back(r->rate);
  return capacity;
}

long required_requests(const std::vector<double>& values, double p, double share) {
  const double q = std::clamp(p / 100, 0.001, 0.999), spread = q * (1 - q);
  // Fewer than these and the interval's upper rank lies beyond the largest value.
  const double least = std::ceil(kNormal95 * kNormal95 * std::max(q / (1 - q), (1 - q) / q));
  const double middle = values.empty() ? 0 : formats::percentile_of(values, 100 * q);
  if (values.size() < 2 || !(middle > 0) || !(share > 0)) return static_cast<long>(least);
  const double h = bandwidth(q, static_cast<double>(values.size()));
  const double slope =
      (formats::percentile_of(values, 100 * (q + h)) - formats::percentile_of(values, 100 * (q - h))) / (2 * h);
  const double needed = spread * std::pow(kNormal95 * slope / (share * middle), 2);  // from var = q(1-q) Q'(q)^2 / n
  return static_cast<long>(std::ceil(std::clamp(needed, least, 1e9)));
}

}  // namespace mw::serve
