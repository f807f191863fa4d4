// SPDX-License-Identifier: Apache-2.0
// Did the server keep up with what it was offered? By trends with their intervals, not by the look of a mean: a mean
// TTFT of an overloaded server only says how long the run was.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/serve/load/sweep.h"

namespace mw::serve {
namespace {

using formats::RequestResult;
using Points = std::vector<std::pair<double, double>>;  // by time

constexpr double kServed = 0.95;  // of what was offered: less is overload
constexpr size_t kBatches = 10;

// Student's t of a 95 % interval, by degrees of freedom 1 .. 8.
constexpr std::array<double, 8> kStudent{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306};

// Means of consecutive parts: neighbours in a queue are alike, and the interval of a slope through single values would
// be far too narrow.
Points batch_means(const Points& points) {
  const size_t batches = std::min(kBatches, points.size() / 2);
  Points means;
  for (size_t b = 0; b < batches; ++b) {
    const size_t first = b * points.size() / batches, end = (b + 1) * points.size() / batches;
    std::pair<double, double> sum{0, 0};
    for (size_t i = first; i < end; ++i) sum.first += points[i].first, sum.second += points[i].second;
    means.emplace_back(sum.first / static_cast<double>(end - first), sum.second / static_cast<double>(end - first));
  }
  return means;
}

// Growth over `span`, where the slope's 95 % interval lies above 0; else 0.
double certain_growth(const Points& points, double span) {
  const Points means = batch_means(points);
  const double n = static_cast<double>(means.size());
  if (n < 4) return 0;
  double mx = 0, my = 0, sxx = 0, sxy = 0, left = 0;
  for (const auto& [x, y] : means) mx += x / n, my += y / n;
  for (const auto& [x, y] : means) sxx += (x - mx) * (x - mx), sxy += (x - mx) * (y - my);
  if (!(sxx > 0)) return 0;
  const double slope = sxy / sxx;
  for (const auto& [x, y] : means) left += std::pow(y - my - slope * (x - mx), 2);
  const double half_width = kStudent[means.size() - 3] * std::sqrt(left / (n - 2) / sxx);
  return slope > half_width ? slope * span : 0;
}

double median(std::vector<double> values) {
  return values.empty() ? 0 : formats::percentile_of(std::move(values), 50);
}

struct Seen {
  std::vector<const RequestResult*> done;  // by intended moment
  double span = 0;                         // of the arrivals
  double service = 0;  // seconds of a request once it is scheduled (or all of it, where that is not known)
  double wait = 0;     // median before
};

Seen look(const LoadResult& played) {
  Seen seen;
  for (const RequestResult& r : played.requests)
    if (r.completed()) seen.done.push_back(&r);
  std::stable_sort(seen.done.begin(), seen.done.end(),
                   [](const auto* a, const auto* b) { return a->intended_s < b->intended_s; });
  std::vector<double> services, waits;
  for (const RequestResult* r : seen.done) {
    const double start = std::isnan(r->scheduled_s) ? r->sent_s : r->scheduled_s;
    services.push_back(r->end_s - start);
    waits.push_back(start - r->intended_s);
  }
  seen.service = median(services), seen.wait = median(waits);
  if (!seen.done.empty()) seen.span = seen.done.back()->intended_s - seen.done.front()->intended_s;
  return seen;
}

bool grows(const Seen& seen, const std::vector<formats::LoadSample>& timeline) {
  Points ttft, queue;
  for (const RequestResult* r : seen.done) ttft.emplace_back(r->intended_s, r->first_token_s - r->intended_s);
  const double last = seen.done.back()->intended_s;
  for (const formats::LoadSample& s : timeline)
    if (s.time_s <= last) queue.emplace_back(s.time_s, s.waiting);
  return certain_growth(ttft, seen.span) > 0.1 * seen.service ||
         certain_growth(queue, seen.span) > std::max(1.0, 0.05 * static_cast<double>(seen.done.size()));
}

// Rate of the middle four fifths of the ends against that of their arrivals: start and drain are not in it.
double served_share(const Seen& seen) {
  std::vector<double> arrivals, ends;
  for (const RequestResult* r : seen.done) arrivals.push_back(r->intended_s), ends.push_back(r->end_s);
  const double offered = formats::percentile_of(arrivals, 90) - formats::percentile_of(arrivals, 10);
  const double served = formats::percentile_of(ends, 90) - formats::percentile_of(ends, 10);
  return served > 0 ? offered / served : 1;
}

}  // namespace

std::string_view to_string(Saturation saturation) {
  switch (saturation) {
    case Saturation::stable:
      return "stable";
    case Saturation::backlogged:
      return "backlogged";
    case Saturation::overloaded:
      return "overloaded";
  }
  return "";
}

Saturation judge_saturation(const Load& load, const LoadResult& played) {
  const Seen seen = look(played);
  if (static_cast<double>(seen.done.size()) < kServed * static_cast<double>(played.requests.size()))
    return Saturation::overloaded;  // what it refused it did not serve
  if (load.settings.arrival == Arrival::closed || seen.done.empty())
    return Saturation::stable;  // who waits for answers
  const bool queued = seen.wait > 0.5 * seen.service;
  if (!(seen.span > 0)) return queued ? Saturation::backlogged : Saturation::stable;
  const bool growing = grows(seen, played.timeline);
  if (growing && served_share(seen) < kServed) return Saturation::overloaded;
  return growing || queued ? Saturation::backlogged : Saturation::stable;
}

}  // namespace mw::serve
