// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/sweep.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
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

bool all_meet(const RatePoint& r, const options::Slo& slo) {
  const auto within = [](double value, double limit) { return limit <= 0 || value <= limit; };
  return !r.is_overloaded() && within(r.ttft, slo.ttft_ms) && within(r.tpot, slo.tpot_ms) && within(r.e2e, slo.e2e_ms);
}

// The rate at which the first limit is reached between `good`, which meets all, and `bad`, which does not.
double interpolate_slo(const RatePoint& good, const RatePoint& bad, const options::Slo& slo) {
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

Capacity find_capacity(const std::vector<BenchPoint>& same_length, const options::Slo& slo) {
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

namespace {

struct SweepPoint {
  options::LoadSettings load;
  int repeat = 0;
  bool is_cold = false;
};

// Depends on the values of a point, not on its index, so resumed sweeps get the same points. Prompts repeat at the
// rates of one server only, because the cache of a server over HTTP outlives it.
std::uint64_t salt_of(const SweepSettings& s, double rate, int input_len, int repeat) {
  const double of_rate = s.keeps_cache() || std::isnan(rate) ? 0.0 : rate;
  return mix64(std::bit_cast<std::uint64_t>(of_rate) ^
               mix64(static_cast<std::uint64_t>(input_len) ^ mix64(static_cast<std::uint64_t>(repeat))));
}

std::vector<SweepPoint> points_of(const SweepSettings& s) {
  std::vector<SweepPoint> points;
  const std::vector<double> rates = s.rates();
  for (int repeat = 0; repeat < s.repeats; ++repeat)
    for (const int input_len : s.input_lens)
      for (const double& rate : rates) {
        SweepPoint p{s.load, repeat, s.keeps_cache() && &rate == &rates.front()};
        if (!std::isnan(rate)) p.load.request_rate = rate;
        p.load.input_len = input_len;
        p.load.num_prompts = s.num_prompts(input_len);
        p.load.seed += static_cast<std::uint64_t>(repeat);
        p.load.salt = salt_of(s, rate, input_len, repeat);
        points.push_back(std::move(p));
      }
  return points;
}

bool is_same_rate(double rate, double other) {
  return rate == other || (std::isnan(rate) && std::isnan(other));
}

// Points in `done` are the first repeats of their rate and length.
bool is_done(const SweepPoint& p, const std::vector<formats::BenchPoint>& done) {
  const double rate = p.load.arrival == options::Arrival::closed ? formats::kUnknown : p.load.request_rate;
  return p.repeat < std::count_if(
                        done.begin(), done.end(),
                        [&](const formats::BenchPoint& d) {
                          return is_same_rate(d.request_rate, rate) && d.input_len == p.load.input_len;
                        });
}

// A server of its own takes the rates of one length and repeat.
bool is_same_server(const SweepPoint& a, const SweepPoint& b) {
  return a.repeat == b.repeat && a.load.input_len == b.load.input_len;
}

// Points that are taken again because the cache they leave is needed.
bool fills_cache(const SweepSettings& s, const std::vector<SweepPoint>& points, size_t at,
                 const std::vector<formats::BenchPoint>& done) {
  return s.keeps_cache() &&
         std::any_of(points.begin() + static_cast<std::ptrdiff_t>(at), points.end(), [&](const SweepPoint& later) {
           return is_same_server(later, points[at]) && !is_done(later, done);
         });
}

std::string point_name(const SweepPoint& p) {
  const options::LoadSettings& s = p.load;
  const std::string load = s.arrival == options::Arrival::closed ? std::to_string(s.concurrency) + " users"
                           : std::isinf(s.request_rate)          ? "all at once"
                                                                 : number_text(s.request_rate) + " requests/s";
  return load + ", " + std::to_string(s.input_len) + " tokens";
}

formats::BenchPoint point_of(const options::LoadSettings& settings, const options::Slo& slo, LoadBackend& backend,
                             const LoadBackend::OnProgress& progress, const std::stop_token& stop) {
  if (settings.num_prompts > kMostKeptRequests)
    if (auto point = backend.measure(settings, slo, progress, stop); point || stop.stop_requested())
      return point.value_or(formats::BenchPoint{});
  const Load load = make_load(settings);
  return summarise(load, backend.run(load, progress, stop), slo);
}

}  // namespace

int SweepSettings::num_prompts(int input_len) const {
  const auto other =
      std::find_if(num_prompts_at.begin(), num_prompts_at.end(), [&](const auto& at) { return at.first == input_len; });
  return other == num_prompts_at.end() ? load.num_prompts : other->second;
}

std::vector<double> SweepSettings::rates() const {
  if (load.arrival == options::Arrival::closed) return {formats::kUnknown};
  if (load.arrival == options::Arrival::burst) return {std::numeric_limits<double>::infinity()};
  return request_rates;
}

long SweepSettings::requests() const {
  long each = 0;
  for (const int input_len : input_lens) each += num_prompts(input_len);
  return each * static_cast<long>(rates().size()) * repeats;
}

int SweepSettings::fewest_prompts() const {
  int fewest = load.num_prompts;
  for (size_t i = 0; i < input_lens.size(); ++i)
    fewest = i == 0 ? num_prompts(input_lens[i]) : std::min(fewest, num_prompts(input_lens[i]));
  return fewest;
}

bool run_sweep(const SweepSettings& settings, LoadBackend& backend, const std::vector<formats::BenchPoint>& done,
               const SweepCallbacks& callbacks, std::stop_token stop) {
  const std::vector<SweepPoint> points = points_of(settings);
  if (points.empty())
    throw Error("LOAD", "the sweep has no points",
                {.found = "no rate, no length or no repeat", .expected = "at least one rate, length and repeat"});
  for (const SweepPoint& p : points) {  // reports an invalid point before the first one runs
    options::LoadSettings small = p.load;
    small.num_prompts = 1, small.warmups = 0;
    make_load(small);
  }
  long before = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const SweepPoint& p = points[i];
    if (i == 0 || !is_same_server(p, points[i - 1])) backend.restart();
    const bool is_known = is_done(p, done);
    if (!is_known || fills_cache(settings, points, i, done)) {
      if (callbacks.before_point) callbacks.before_point();
      if (stop.stop_requested()) return false;
      const auto progress = [&](long requests, long) {
        if (callbacks.progress)
          callbacks.progress((is_known ? "filling the cache again: " : "") + point_name(p), before + requests,
                             settings.requests());
      };
      formats::BenchPoint point = point_of(p.load, settings.slo, backend, progress, stop);
      if (stop.stop_requested()) return false;  // an interrupted point is dropped
      point.is_cold = p.is_cold;
      if (!is_known) callbacks.point(point);
    }
    before += p.load.num_prompts;
  }
  return true;
}

}  // namespace mw::serve
