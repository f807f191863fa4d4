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

struct Point {
  LoadSettings load;
  int repeat = 0;
};

// A closed loop has no rate, a burst only one.
std::vector<double> rates_of(const SweepSettings& s) {
  if (s.load.arrival == Arrival::closed) return {formats::kUnknown};
  if (s.load.arrival == Arrival::burst) return {std::numeric_limits<double>::infinity()};
  return s.request_rates;
}

// Of values, not of places in a list: a sweep that goes on, or a longer one, makes the same points.
std::uint64_t salt_of(double rate, int input_len, int repeat) {
  return mix64(std::bit_cast<std::uint64_t>(std::isnan(rate) ? 0.0 : rate) ^
               mix64(static_cast<std::uint64_t>(input_len) ^ mix64(static_cast<std::uint64_t>(repeat))));
}

std::vector<Point> points_of(const SweepSettings& s) {
  std::vector<Point> points;
  for (const int input_len : s.input_lens)
    for (const double rate : rates_of(s))
      for (int repeat = 0; repeat < s.repeats; ++repeat) {
        Point p{s.load, repeat};
        if (!std::isnan(rate)) p.load.request_rate = rate;
        p.load.input_len = input_len;
        p.load.seed += static_cast<std::uint64_t>(repeat);
        p.load.salt = salt_of(rate, input_len, repeat);
        points.push_back(std::move(p));
      }
  return points;
}

bool same(double rate, double other) {
  return rate == other || (std::isnan(rate) && std::isnan(other));
}

// The first repeats of a rate and length are the ones that are done.
bool is_done(const Point& p, const std::vector<formats::BenchPoint>& done) {
  const double rate = p.load.arrival == Arrival::closed ? formats::kUnknown : p.load.request_rate;
  return p.repeat < std::count_if(
                        done.begin(), done.end(),
                        [&](const formats::BenchPoint& d) {
                          return same(d.request_rate, rate) && d.input_len == p.load.input_len;
                        });
}

std::string name_of(const Point& p) {
  const LoadSettings& s = p.load;
  const std::string load = s.arrival == Arrival::closed ? std::to_string(s.concurrency) + " users"
                           : std::isinf(s.request_rate) ? "all at once"
                                                        : number_text(s.request_rate) + " requests/s";
  return load + ", " + std::to_string(s.input_len) + " tokens";
}

}  // namespace

bool run_sweep(const SweepSettings& settings, LoadBackend& backend, const std::vector<formats::BenchPoint>& done,
               const SweepCallbacks& callbacks, std::stop_token stop) {
  const std::vector<Point> points = points_of(settings);
  if (points.empty())
    throw Error({.id = "LOAD",
                 .message = "a sweep without a point",
                 .found = "no rate, no length or no repeat",
                 .expected = "at least one of each"});
  for (const Point& p : points) {  // a mistake in the last point is said before the first is played
    LoadSettings small = p.load;
    small.num_prompts = 1, small.warmups = 0;
    make_load(small);
  }
  const long each = settings.load.num_prompts, total = each * static_cast<long>(points.size());
  long before = 0;
  for (const Point& p : points) {
    if (!is_done(p, done)) {
      if (callbacks.between) callbacks.between();
      if (stop.stop_requested()) return false;
      const auto progress = [&](long requests, long) {
        if (callbacks.progress) callbacks.progress(name_of(p), before + requests, total);
      };
      const Load load = make_load(p.load);
      const LoadResult played = backend.play(load, progress, stop);
      if (stop.stop_requested()) return false;  // half a point is none
      callbacks.point(summarise(load, played, settings.slo));
    }
    before += each;
  }
  return true;
}

}  // namespace mw::serve
