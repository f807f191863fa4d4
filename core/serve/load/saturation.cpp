// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/saturation.h"

#include <algorithm>
#include <cmath>

#include "core/serve/load/confidence.h"

namespace mw::serve {
namespace {

using formats::RequestResult;
using Points = LoadEvidence::Points;

constexpr double kServed = 0.95;  // of the offered load; less is overload

// Growth over `span` if the 95 % interval of the slope lies above 0, otherwise 0.
double significant_growth(const Points& means, double span) {
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

// Rate at which the middle four fifths of the requests ended, relative to their arrival rate; excludes start and drain.
double served_share(const std::vector<const RequestResult*>& done) {
  std::vector<double> arrivals, ends;
  for (const RequestResult* r : done) arrivals.push_back(r->intended_s), ends.push_back(r->end_s);
  const double offered = formats::percentile_of(arrivals, 90) - formats::percentile_of(arrivals, 10);
  const double served = formats::percentile_of(ends, 90) - formats::percentile_of(ends, 10);
  return served > 0 ? offered / served : 1;
}

LoadEvidence evidence_of(const Load& load, const LoadResult& result) {
  LoadEvidence e{.is_closed = load.settings.arrival == Arrival::closed,
                 .sent = static_cast<std::int64_t>(result.requests.size())};
  std::vector<const RequestResult*> done;  // by intended time
  for (const RequestResult& r : result.requests)
    if (r.completed()) done.push_back(&r);
  e.completed = static_cast<std::int64_t>(done.size());
  if (done.empty()) return e;
  std::stable_sort(done.begin(), done.end(),
                   [](const auto* a, const auto* b) { return a->intended_s < b->intended_s; });
  std::vector<double> services, waits, unserved;
  Points ttft, queue;
  for (const RequestResult* r : done) {
    const double start = std::isnan(r->scheduled_s) ? r->sent_s : r->scheduled_s;
    services.push_back(r->end_s - start);
    waits.push_back(start - r->intended_s);
    unserved.push_back((std::isnan(r->scheduled_s) ? r->first_token_s : r->scheduled_s) - r->intended_s);
    ttft.emplace_back(r->intended_s, r->first_token_s - r->intended_s);
  }
  const double last = done.back()->intended_s;
  for (const formats::LoadSample& s : result.timeline)
    if (s.time_s <= last) queue.emplace_back(s.time_s, s.waiting);
  e.service = median(services), e.wait = median(waits), e.unserved = median(unserved);
  e.span = last - done.front()->intended_s;
  e.ttft = part_means(ttft);
  e.queue = part_means(queue);
  e.served_share = served_share(done);
  return e;
}

}  // namespace

LoadEvidence::Points part_means(const Points& points) {
  const size_t parts = std::min(kEvidenceParts, points.size() / 2);
  Points means;
  for (size_t b = 0; b < parts; ++b) {
    const size_t first = b * points.size() / parts, end = (b + 1) * points.size() / parts;
    std::pair<double, double> sum{0, 0};
    for (size_t i = first; i < end; ++i) sum.first += points[i].first, sum.second += points[i].second;
    means.emplace_back(sum.first / static_cast<double>(end - first), sum.second / static_cast<double>(end - first));
  }
  return means;
}

Saturation judge_saturation(const LoadEvidence& e, double longest_wait_s) {
  if (static_cast<double>(e.completed) < kServed * static_cast<double>(e.sent))
    return Saturation::overloaded;  // failed requests were not served
  if (e.completed == 0) return Saturation::stable;
  const bool queued = e.wait > 0.5 * e.service || e.unserved > longest_wait_s;
  if (e.is_closed || !(e.span > 0)) return queued ? Saturation::backlogged : Saturation::stable;
  const bool growing = significant_growth(e.ttft, e.span) > 0.1 * e.service ||
                       significant_growth(e.queue, e.span) > std::max(1.0, 0.05 * static_cast<double>(e.completed));
  if (growing && e.served_share < kServed) return Saturation::overloaded;
  return growing || queued ? Saturation::backlogged : Saturation::stable;
}

Saturation judge_saturation(const Load& load, const LoadResult& result, double longest_wait_s) {
  return judge_saturation(evidence_of(load, result), longest_wait_s);
}

}  // namespace mw::serve
