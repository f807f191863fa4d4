// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/saturation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/counted.h"
#include "core/base/units.h"

namespace mw::serve {
namespace {

constexpr double kTail = (1 - kConfidence) / 2;

// The 97.5 % quantiles of Student's t by degrees of freedom, from 1 (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
constexpr std::array kStudent{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                              2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                              2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;

double log_choose(double n, double k) {
  int sign = 0;  // std::lgamma writes it to a global
  return ::lgamma_r(n + 1, &sign) - ::lgamma_r(k + 1, &sign) - ::lgamma_r(n - k + 1, &sign);
}

std::string percent_text(double share) {
  return "p" + number_text(100 * share, 3);
}

}  // namespace

double student_t(size_t degrees) {
  return degrees <= kStudent.size() ? kStudent[degrees - 1] : kNormal;
}

// The number of samples below the percentile is binomial with n and q. Its terms beyond 12 deviations are below the
// precision of a double.
RankInterval rank_interval(double p, long samples) {
  const double q = p / 100, n = static_cast<double>(samples), reach = 12 * std::sqrt(n * q * (1 - q)) + 12;
  const long first = std::max(0L, static_cast<long>(std::floor(n * q - reach)));
  RankInterval interval;
  double below = 0;  // probability of fewer than k samples below the percentile
  for (long k = first; k <= samples; ++k) {
    if (below <= kTail && k >= 1) interval.low = k;
    if (below >= 1 - kTail && k >= 1) {
      interval.high = k;
      break;
    }
    const double m = static_cast<double>(k);
    below += std::exp(log_choose(n, m) + m * std::log(q) + (n - m) * std::log1p(-q));
  }
  return interval;
}

long samples_needed(double p) {
  const double q = std::max(p, 100 - p) / 100;
  return static_cast<long>(std::ceil(std::log(kTail) / std::log(q)));
}

std::string percentile_text(double p, long samples) {
  const std::string what = percent_text(p / 100) + " of " + counted(samples, "request") + " ";
  const RankInterval interval = rank_interval(p, samples);
  if (interval.low && interval.high) {
    const auto share = [samples](long rank) {
      return percent_text(static_cast<double>(rank) / static_cast<double>(samples));
    };
    return what + "lies between " + share(*interval.low) + " and " + share(*interval.high) +
           " of them at 95 % confidence";
  }
  return what + "has no " + (interval.low ? "upper" : "lower") + " bound at 95 % confidence; " +
         std::to_string(samples_needed(p)) + " requests are needed";
}

MeanInterval mean_interval(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2)
    return {mean, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double half = student_t(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

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
  LoadEvidence e{.is_closed = load.settings.arrival == options::Arrival::closed,
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

bool is_too_short(const formats::BenchPoint& p) {
  constexpr double kSteady = 2.0 / 3;
  return p.verdict != to_string(Saturation::overloaded) && std::isfinite(p.request_rate) &&
         p.request_throughput < kSteady * p.request_rate;
}

std::string verdict_text(const formats::BenchPoint& p) {
  return p.verdict + (!p.verdict.empty() && is_too_short(p) ? ", too short" : "");
}

}  // namespace mw::serve
