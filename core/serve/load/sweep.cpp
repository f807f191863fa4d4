// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/sweep.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"

namespace mw::serve {
namespace {

struct SweepPoint {
  LoadSettings load;
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
  const double rate = p.load.arrival == Arrival::closed ? formats::kUnknown : p.load.request_rate;
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
  const LoadSettings& s = p.load;
  const std::string load = s.arrival == Arrival::closed ? std::to_string(s.concurrency) + " users"
                           : std::isinf(s.request_rate) ? "all at once"
                                                        : number_text(s.request_rate) + " requests/s";
  return load + ", " + std::to_string(s.input_len) + " tokens";
}

formats::BenchPoint point_of(const LoadSettings& settings, const Slo& slo, LoadBackend& backend,
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
  if (load.arrival == Arrival::closed) return {formats::kUnknown};
  if (load.arrival == Arrival::burst) return {std::numeric_limits<double>::infinity()};
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
    throw Error({.id = "LOAD",
                 .message = "the sweep has no points",
                 .found = "no rate, no length or no repeat",
                 .expected = "at least one rate, length and repeat"});
  for (const SweepPoint& p : points) {  // reports an invalid point before the first one runs
    LoadSettings small = p.load;
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
