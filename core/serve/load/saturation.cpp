// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/saturation.h"

#include <algorithm>
#include <cmath>

#include "core/serve/load/confidence.h"

namespace mw::serve {
namespace {

using formats::RequestResult;
using Points = std::vector<std::pair<double, double>>;  // by time

constexpr double kServed = 0.95;  // of the offered load; less is overload
constexpr size_t kBatches = 10;

// Means of consecutive parts. Neighbouring values in a queue are correlated, so the confidence interval of a slope
// through single values would be far too narrow.
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

// Growth over `span` if the 95 % interval of the slope lies above 0, otherwise 0.
double significant_growth(const Points& points, double span) {
  const Points means = batch_means(points);
  const double n = static_cast<double>(means.size());
  if (n < 4) return 0;
  double mx = 0, my = 0, sxx = 0, sxy = 0, left = 0;
  for (const auto& [x, y] : means) mx += x / n, my += y / n;
  for (const auto& [x, y] : means) sxx += (x - mx) * (x - mx), sxy += (x - mx) * (y - my);
  if (!(sxx > 0)) return 0;
  const double slope = sxy / sxx;
  for (const auto& [x, y] : means) left += std::pow(y - my - slope * (x - mx), 2);
  const double half_width = student_t(means.size() - 2) * std::sqrt(left / (n - 2) / sxx);
  return slope > half_width ? slope * span : 0;
}

double median(std::vector<double> values) {
  return values.empty() ? 0 : formats::percentile_of(std::move(values), 50);
}

struct RunSummary {
  std::vector<const RequestResult*> done;  // completed, by intended time
  double span = 0;                         // of the arrivals, s
  double service = 0;   // median time of a request from its first step, or from sending if that is unknown, s
  double wait = 0;      // median time before, s
  double unserved = 0;  // median time before the first step, or before the first token if that step is unknown, s
};

RunSummary summarise_run(const LoadResult& result) {
  RunSummary run;
  for (const RequestResult& r : result.requests)
    if (r.completed()) run.done.push_back(&r);
  std::stable_sort(run.done.begin(), run.done.end(),
                   [](const auto* a, const auto* b) { return a->intended_s < b->intended_s; });
  std::vector<double> services, waits, unserved;
  for (const RequestResult* r : run.done) {
    const double start = std::isnan(r->scheduled_s) ? r->sent_s : r->scheduled_s;
    services.push_back(r->end_s - start);
    waits.push_back(start - r->intended_s);
    unserved.push_back((std::isnan(r->scheduled_s) ? r->first_token_s : r->scheduled_s) - r->intended_s);
  }
  run.service = median(services), run.wait = median(waits), run.unserved = median(unserved);
  if (!run.done.empty()) run.span = run.done.back()->intended_s - run.done.front()->intended_s;
  return run;
}

bool is_growing(const RunSummary& run, const std::vector<formats::LoadSample>& timeline) {
  Points ttft, queue;
  for (const RequestResult* r : run.done) ttft.emplace_back(r->intended_s, r->first_token_s - r->intended_s);
  const double last = run.done.back()->intended_s;
  for (const formats::LoadSample& s : timeline)
    if (s.time_s <= last) queue.emplace_back(s.time_s, s.waiting);
  return significant_growth(ttft, run.span) > 0.1 * run.service ||
         significant_growth(queue, run.span) > std::max(1.0, 0.05 * static_cast<double>(run.done.size()));
}

// Rate at which the middle four fifths of the requests ended, relative to their arrival rate; excludes start and drain.
double served_share(const RunSummary& run) {
  std::vector<double> arrivals, ends;
  for (const RequestResult* r : run.done) arrivals.push_back(r->intended_s), ends.push_back(r->end_s);
  const double offered = formats::percentile_of(arrivals, 90) - formats::percentile_of(arrivals, 10);
  const double served = formats::percentile_of(ends, 90) - formats::percentile_of(ends, 10);
  return served > 0 ? offered / served : 1;
}

}  // namespace

Saturation judge_saturation(const Load& load, const LoadResult& result, double longest_wait_s) {
  const RunSummary run = summarise_run(result);
  if (static_cast<double>(run.done.size()) < kServed * static_cast<double>(result.requests.size()))
    return Saturation::overloaded;  // failed requests were not served
  if (run.done.empty()) return Saturation::stable;
  const bool queued = run.wait > 0.5 * run.service || run.unserved > longest_wait_s;
  if (load.settings.arrival == Arrival::closed || !(run.span > 0))
    return queued ? Saturation::backlogged : Saturation::stable;
  const bool growing = is_growing(run, result.timeline);
  if (growing && served_share(run) < kServed) return Saturation::overloaded;
  return growing || queued ? Saturation::backlogged : Saturation::stable;
}

}  // namespace mw::serve
